/** A list that the server returns page by page: a grid with arrow keys, its skeleton, its end, and its empty state. */

import type { ReactNode } from 'react';
import {
  Cell,
  Column,
  Row,
  type Selection,
  type SortDescriptor,
  Table,
  TableBody,
  TableHeader,
} from 'react-aria-components';
import type { List } from '../api/list.ts';
import { common } from '../text/en/common.ts';
import { Button } from './button.tsx';
import { classes } from './classes.ts';
import { Checkbox } from './field.tsx';
import { Hidden, Skeleton } from './mark.tsx';
import { Problem } from './problem.tsx';
import { Select } from './select.tsx';
import styles from './table.module.css';

export interface ListColumn<T> {
  readonly id: string;
  readonly title: string;
  readonly cell: (row: T) => ReactNode;
  /** number: right-aligned with tabular figures. end: the row's actions. */
  readonly kind?: 'number' | 'end';
  /** second: leaves below 1180 px. phoneOff: leaves below 900 px. */
  readonly rank?: 'second' | 'phoneOff';
  readonly isTitleHidden?: boolean;
  /** The member of the API that the list can be sorted by, as the first press on the head sorts: `-` is downwards. */
  readonly sort?: string;
  /** On a phone, where the head is not shown, the title stands before the value. */
  readonly isLabeled?: boolean;
}

export interface ListTableProps<T extends object> {
  readonly label: string;
  readonly list: List<T>;
  readonly idOf: (row: T) => string;
  /** Pass the same array each time, so that unchanged rows do not render again. */
  readonly columns: readonly ListColumn<T>[];
  readonly onOpen?: (row: T) => void;
  readonly empty: ReactNode;
  readonly selected?: ReadonlySet<string>;
  readonly onSelect?: (ids: ReadonlySet<string>) => void;
  /** The order of the list, for the columns with `sort`. */
  readonly sort?: string;
  readonly onSort?: (sort: string) => void;
}

const SKELETONS = ['a', 'b', 'c', 'd', 'e', 'f'] as const;

export function ListTable<T extends object>({
  label,
  list,
  idOf,
  columns,
  onOpen,
  empty,
  selected,
  onSelect,
  sort,
  onSort,
}: ListTableProps<T>) {
  if (list.kind === 'failed') return <Problem error={list.error} onRetry={list.retry} />;
  if (list.kind === 'loaded' && list.rows.length === 0) return <>{empty}</>;
  const first = columns[0]?.id;
  // Below 900 px the cells of a row are in two columns.
  const onPhone = columns.filter(({ rank }) => rank === undefined);
  const look = (column: ListColumn<T>): string =>
    classes(
      column.kind !== undefined && styles[column.kind],
      column.rank === 'second' && styles.second,
      column.rank !== undefined && styles.phoneOff,
      onPhone.indexOf(column) % 2 === 1 && styles.phoneEnd,
    );
  return (
    <>
      {sort === undefined || onSort === undefined ? null : <PhoneSort columns={columns} sort={sort} onSort={onSort} />}
      <Table
        aria-label={label}
        aria-busy={list.kind === 'loading'}
        className={styles.table}
        selectionMode={onSelect === undefined ? 'none' : 'multiple'}
        selectedKeys={selected}
        onSelectionChange={(chosen: Selection) => onSelect?.(idsOf(chosen, list, idOf))}
        {...(sort === undefined ? {} : { sortDescriptor: descriptorOf(columns, sort) })}
        onSortChange={({ column }) => onSort?.(nextSort(columns, sort, String(column)))}
        onRowAction={onOpen === undefined ? undefined : (id) => open(list, idOf, onOpen, String(id))}
      >
        <TableHeader>
          {onSelect === undefined ? null : (
            <Column className={styles.phoneOff} width={28}>
              <Hidden>{common.selection}</Hidden>
              <Checkbox slot="selection" />
            </Column>
          )}
          {columns.map((column) => (
            <Column
              key={column.id}
              id={column.id}
              isRowHeader={column.id === first}
              allowsSorting={onSort !== undefined && column.sort !== undefined}
              className={look(column)}
            >
              {({ sortDirection }) => (
                <>
                  {column.isTitleHidden ? <Hidden>{column.title}</Hidden> : column.title}
                  {sortDirection === undefined ? null : (
                    <span aria-hidden="true" className={styles.direction}>
                      {sortDirection === 'ascending' ? '↑' : '↓'}
                    </span>
                  )}
                </>
              )}
            </Column>
          ))}
        </TableHeader>
        {list.kind === 'loading' ? (
          <TableBody>
            {SKELETONS.map((id) => (
              <Row key={id} id={`skeleton ${id}`} textValue={common.loading}>
                {onSelect === undefined ? null : <Cell className={styles.phoneOff}> </Cell>}
                {columns.map((column, index) => (
                  <Cell key={column.id} className={look(column)}>
                    {index === 0 ? <Hidden>{common.loading}</Hidden> : null}
                    <Skeleton width={index === 0 ? 3 : 2} />
                  </Cell>
                ))}
              </Row>
            ))}
          </TableBody>
        ) : (
          <TableBody items={list.rows} dependencies={[columns, onSelect === undefined]}>
            {(row) => (
              <Row id={idOf(row)}>
                {onSelect === undefined ? null : (
                  <Cell className={styles.phoneOff}>
                    <Checkbox slot="selection" />
                  </Cell>
                )}
                {columns.map((column) => (
                  <Cell
                    key={column.id}
                    className={look(column)}
                    {...(column.isLabeled === true ? { 'data-label': column.title } : {})}
                  >
                    {column.cell(row)}
                  </Cell>
                ))}
              </Row>
            )}
          </TableBody>
        )}
      </Table>
      {list.kind === 'loaded' && (list.more !== undefined || list.total !== undefined) ? (
        <div className={styles.below}>
          {list.total === undefined ? null : (
            <span role="status">
              {common.shownOf(list.rows.length, common.total(list.total.rows, list.total.exceeds))}
            </span>
          )}
          {list.more === undefined ? null : (
            <Button small onPress={list.more} isPending={list.isLoadingMore}>
              {common.more}
            </Button>
          )}
        </div>
      ) : null}
    </>
  );
}

function descriptorOf<T>(columns: readonly ListColumn<T>[], sort: string): SortDescriptor {
  const column = columns.find((one) => one.sort !== undefined && memberOf(one.sort) === memberOf(sort));
  return { column: column?.id ?? '', direction: sort.startsWith('-') ? 'descending' : 'ascending' };
}

/** The head's own direction first, and the other one when it is pressed again. */
function nextSort<T>(columns: readonly ListColumn<T>[], sort: string | undefined, id: string): string {
  const first = columns.find((column) => column.id === id)?.sort ?? '';
  if (sort !== first) return first;
  return first.startsWith('-') ? memberOf(first) : `-${first}`;
}

function memberOf(sort: string): string {
  return sort.replace(/^-/, '');
}

/** On a phone the head of the table is not shown. */
function PhoneSort<T>({
  columns,
  sort,
  onSort,
}: {
  readonly columns: readonly ListColumn<T>[];
  readonly sort: string;
  readonly onSort: (sort: string) => void;
}) {
  const options = columns.flatMap(({ sort: first, title }) =>
    first === undefined
      ? []
      : [
          { value: first, label: common.sortedFirst(title) },
          { value: first.startsWith('-') ? memberOf(first) : `-${first}`, label: common.sortedLast(title) },
        ],
  );
  return (
    <div className={styles.phoneSort}>
      <Select label={common.sortBy} value={sort} onChange={onSort} options={options} />
    </div>
  );
}

/** Two lines of a cell. */
export function TwoLines({ name, second }: { readonly name: ReactNode; readonly second?: ReactNode }) {
  return (
    <>
      <span className={styles.name}>{name}</span>
      {second === undefined || second === '' || second === null ? null : <span className={styles.two}>{second}</span>}
    </>
  );
}

function idsOf<T>(chosen: Selection, list: List<T>, idOf: (row: T) => string): ReadonlySet<string> {
  if (chosen === 'all') return new Set(list.kind === 'loaded' ? list.rows.map(idOf) : []);
  return new Set([...chosen].map(String));
}

function open<T>(list: List<T>, idOf: (row: T) => string, onOpen: (row: T) => void, id: string): void {
  const row = list.kind === 'loaded' ? list.rows.find((one) => idOf(one) === id) : undefined;
  if (row !== undefined) onOpen(row);
}
