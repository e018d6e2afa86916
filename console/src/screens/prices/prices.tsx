/** The prices of models. Platform administrators change them, and others read them. */

import { useNavigate, useSearch } from '@tanstack/react-router';
import type { Price, Prices as PriceList } from '../../../../client/index.ts';
import type { Tagged } from '../../api/edit.ts';
import { usePrices } from '../../api/prices.ts';
import { useMe } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { prices as text } from '../../text/en/prices.ts';
import { Button } from '../../ui/button.tsx';
import { SearchField } from '../../ui/field.tsx';
import { type ListColumn, ListTable } from '../../ui/list.tsx';
import { ListEmpty } from '../../ui/list-empty.tsx';
import { count } from '../../ui/number.ts';
import { Page, Tools } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Ago } from '../../ui/time.tsx';
import { useTyped } from '../../ui/use-typed.ts';
import { usePartList } from './part-list.ts';
import { PriceDrawer } from './price-drawer.tsx';
import styles from './prices.module.css';

const COLUMNS: readonly ListColumn<Price>[] = [
  { id: 'models', title: text.models, cell: ({ models }) => <code className={styles.models}>{models}</code> },
  { id: 'input', title: text.input, kind: 'number', isLabeled: true, cell: ({ input }) => input },
  { id: 'output', title: text.output, kind: 'number', isLabeled: true, cell: ({ output }) => output },
  {
    id: 'cached_input',
    title: text.cachedInput,
    kind: 'number',
    rank: 'phoneOff',
    cell: ({ cached_input: cached }) => cached ?? <span className={styles.same}>{text.sameAsInput}</span>,
  },
  {
    id: 'cache_write',
    title: text.cacheWrite,
    kind: 'number',
    rank: 'phoneOff',
    cell: ({ cache_write: write }) => write ?? <span className={styles.same}>{text.sameAsInput}</span>,
  },
];

export function Prices() {
  const loaded = usePrices();
  const { platform_admin: isPlatformAdmin } = useMe();
  const navigate = useNavigate({ from: '/prices' });
  const actions = isPlatformAdmin ? (
    <>
      <Button onPress={() => void navigate({ to: '/import-prices', search: {} })}>{text.import}</Button>
      <Button tone="primary" onPress={() => void navigate({ search: (before) => ({ ...before, add: true }) })}>
        {text.create}
      </Button>
    </>
  ) : (
    <span className={styles.readOnly}>{text.readOnly}</span>
  );
  return (
    <Page title={text.title} says={text.says} actions={actions}>
      {loaded.isError && loaded.data === undefined ? (
        <Problem error={loaded.error} onRetry={() => void loaded.refetch()} />
      ) : loaded.data === undefined ? (
        <p aria-busy="true">{common.loading}</p>
      ) : (
        <List loaded={loaded.data} mayEdit={isPlatformAdmin} />
      )}
    </Page>
  );
}

function List({ loaded, mayEdit }: { readonly loaded: Tagged<PriceList>; readonly mayEdit: boolean }) {
  const { q: searched, edit, add, model } = useSearch({ from: '/inside/prices' });
  const navigate = useNavigate({ from: '/prices' });
  const [typed, setTyped] = useTyped(searched ?? '', (q) => {
    void navigate({ search: (before) => ({ ...before, q: q === '' ? undefined : q }), replace: true });
  });
  const { prices, version, currency, set_at: setAt } = loaded.data;
  const wanted = (searched ?? '').toLowerCase();
  const list = usePartList(prices.filter(({ models }) => models.toLowerCase().includes(wanted)));
  const close = (): void =>
    void navigate({ search: (before) => ({ ...before, edit: undefined, add: undefined, model: undefined }) });
  return (
    <>
      <Tools
        end={
          <>
            {text.listSays(text.many(prices.length, count(prices.length)), currency)}, {text.version(version)}
            {setAt === null ? null : (
              <>
                , {text.setAt} <Ago time={setAt} />
              </>
            )}
          </>
        }
      >
        <SearchField label={text.search} placeholder={text.searchFor} value={typed} onChange={setTyped} />
      </Tools>
      <ListTable
        label={text.title}
        list={list}
        idOf={({ models }) => models}
        onOpen={
          mayEdit ? ({ models }) => void navigate({ search: (before) => ({ ...before, edit: models }) }) : undefined
        }
        empty={<ListEmpty texts={text} onShowAll={prices.length === 0 ? undefined : () => setTyped('')} />}
        columns={COLUMNS}
      />
      {mayEdit && (edit !== undefined || add === true) ? (
        <PriceDrawer key={edit ?? ''} loaded={loaded} edited={edit} model={model} onClose={close} />
      ) : null}
    </>
  );
}
