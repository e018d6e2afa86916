/** The requests that Postern would have denied, by reason and by principal. A press on a row filters the list. */

import type { ReactNode } from 'react';
import type { Trial } from '../../../../client/index.ts';
import { shownPrincipal } from '../../api/principal.tsx';
import { trial as text } from '../../text/en/trial.ts';
import { Id, Small } from '../../ui/mark.tsx';
import { count } from '../../ui/number.ts';
import { reasonOf } from '../overview/reasons.tsx';
import type { TrialSearch } from './search.ts';
import styles from './trial.module.css';
import type { ShowTrial } from './trial.tsx';

interface TableProps<T> {
  readonly rows: readonly T[];
  readonly search: TrialSearch;
  readonly onShow: ShowTrial;
}

/** The server shows no more principals. */
const MAX_PRINCIPALS = 50;

export function ByReason({ rows, search, onShow }: TableProps<Trial['denied_by_code'][number]>) {
  return (
    <Numbers head={text.reason} rows={rows}>
      {rows.map((row) => (
        <NumbersRow key={`${row.code} ${row.policy}`} row={row}>
          <Only
            name={reasonOf(row.code)}
            isPressed={search.code === row.code}
            onChange={(isPressed) => onShow({ code: isPressed ? row.code : undefined, kind: 'all' })}
          />
          {row.policy === null ? null : <Small>{text.policy(row.policy)}</Small>}
        </NumbersRow>
      ))}
    </Numbers>
  );
}

export function ByPrincipal({ rows, search, onShow }: TableProps<Trial['denied_by_principal'][number]>) {
  return (
    <>
      <Numbers head={text.principal} rows={rows}>
        {rows.map((row) => {
          const { principal } = row;
          return (
            <NumbersRow key={principal?.id ?? ''} row={row}>
              {principal === null ? (
                text.noPrincipal
              ) : (
                <>
                  <Only
                    name={principal.name ?? shownPrincipal(principal.id)}
                    isPressed={search.principal === principal.id}
                    onChange={(isPressed) => onShow({ principal: isPressed ? principal.id : undefined, kind: 'all' })}
                  />
                  <span className={styles.id}>
                    <Id value={principal.id} />
                  </span>
                </>
              )}
            </NumbersRow>
          );
        })}
      </Numbers>
      {rows.length < MAX_PRINCIPALS ? null : <Small>{text.firstPrincipals(rows.length)}</Small>}
    </>
  );
}

interface NumbersProps {
  readonly head: string;
  readonly rows: readonly unknown[];
  readonly children: ReactNode;
}

function Numbers({ head, rows, children }: NumbersProps) {
  if (rows.length === 0) return <p className={styles.soft}>{text.none}</p>;
  return (
    <table className={styles.numbers}>
      <thead>
        <tr>
          <th scope="col">{head}</th>
          <th scope="col">{text.denied}</th>
          <th scope="col">{text.allowedThere}</th>
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}

interface NumbersRowProps {
  readonly row: { readonly count: number; readonly differing: number };
  readonly children: ReactNode;
}

function NumbersRow({ row, children }: NumbersRowProps) {
  return (
    <tr>
      <th scope="row">{children}</th>
      <td>{count(row.count)}</td>
      <td>{count(row.differing)}</td>
    </tr>
  );
}

interface OnlyProps {
  readonly name: string;
  readonly isPressed: boolean;
  readonly onChange: (isPressed: boolean) => void;
}

function Only({ name, isPressed, onChange }: OnlyProps) {
  return (
    <button
      type="button"
      className={styles.only}
      aria-pressed={isPressed}
      title={text.only(name)}
      onClick={() => onChange(!isPressed)}
    >
      {name}
    </button>
  );
}
