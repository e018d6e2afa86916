/** The page of a list with a search, filters, and one action that creates a row. */

import { useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { SearchText } from '../api/search-text.ts';
import { Button } from './button.tsx';
import { SearchField, Segments } from './field.tsx';
import { ListTable, type ListTableProps } from './list.tsx';
import { ListEmpty, type ListEmptyProps } from './list-empty.tsx';
import { Page, Tools } from './page.tsx';
import { useTyped } from './use-typed.ts';

interface ListPageProps<T extends object> extends Pick<ListTableProps<T>, 'list' | 'idOf' | 'onOpen' | 'columns'> {
  readonly texts: ListEmptyProps['texts'] & {
    readonly title: string;
    readonly says?: string;
    readonly create: string;
    readonly search: string;
    readonly searchFor: string;
  };
  /** The address's search and filters. */
  readonly search: { readonly q?: SearchText; readonly tenant?: string };
  readonly create: '/new-budget' | '/new-issuer' | '/new-policy' | '/new-role';
  /** Why the caller may not create a row; undefined: nothing is known against it. */
  readonly denied: string | undefined;
  /** The filters. `set` puts the chosen ones into the address. */
  readonly filters: (set: (change: object) => void) => ReactNode;
}

export function ListPage<T extends object>({ texts, search, create, denied, filters, ...table }: ListPageProps<T>) {
  const navigate = useNavigate();
  const set = (change: object, replace = false): void =>
    void navigate({ to: '.', search: (before: object) => ({ ...before, ...change }), replace });
  const [typed, setTyped] = useTyped(search.q ?? '', (q) => set({ q: q === '' ? undefined : q }, true));
  const { tenant: _, ...narrowing } = search;
  const isNarrowed = Object.values(narrowing).some((value) => value !== undefined);
  const showAll = (): void => {
    setTyped('');
    void navigate({ to: '.', search: {} });
  };
  return (
    <Page
      title={texts.title}
      says={texts.says}
      actions={
        <Button tone="primary" disabledReason={denied} onPress={() => void navigate({ to: create, search: {} })}>
          {texts.create}
        </Button>
      }
    >
      <Tools>
        <SearchField label={texts.search} placeholder={texts.searchFor} value={typed} onChange={setTyped} />
        {filters(set)}
      </Tools>
      <ListTable
        label={texts.title}
        empty={<ListEmpty texts={texts} onShowAll={isNarrowed ? showAll : undefined} />}
        {...table}
      />
    </Page>
  );
}

interface OneOrAllProps<T extends string> {
  readonly label: string;
  readonly values: readonly T[];
  readonly texts: Readonly<Record<T | 'all', string>>;
  /** Undefined: all. */
  readonly value: T | undefined;
  readonly onChange: (value: T | undefined) => void;
}

/** A filter by one of a few values. */
export function OneOrAll<T extends string>({ label, values, texts, value, onChange }: OneOrAllProps<T>) {
  const all: readonly (T | 'all')[] = ['all', ...values];
  return (
    <Segments
      label={label}
      value={value ?? 'all'}
      onChange={(chosen) => onChange(chosen === 'all' ? undefined : chosen)}
      options={all.map((one) => ({ value: one, label: texts[one] }))}
    />
  );
}
