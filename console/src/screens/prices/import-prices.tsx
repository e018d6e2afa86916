/** The prices that the release proposes, compared with the list in force, to accept one by one or together. */

import { useMutation, useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { type PriceProposal, ProblemError, type ProposedPrice } from '../../../../client/index.ts';
import { client } from '../../api/client.ts';
import { pricesChanged, readPrices, writePrices } from '../../api/prices.ts';
import { common } from '../../text/en/common.ts';
import { prices as text } from '../../text/en/prices.ts';
import { Button } from '../../ui/button.tsx';
import { Chosen } from '../../ui/chosen.tsx';
import { SearchField, Segments } from '../../ui/field.tsx';
import { type ListColumn, ListTable } from '../../ui/list.tsx';
import { Empty, Note, State } from '../../ui/mark.tsx';
import { Page, Tools } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Refused } from '../../ui/refused.tsx';
import { Select } from '../../ui/select.tsx';
import { useTyped } from '../../ui/use-typed.ts';
import { usePartList } from './part-list.ts';
import styles from './prices.module.css';
import { PROPOSAL_SHOWN } from './search.ts';

const TONES = { added: 'good', changed: 'care', unchanged: 'off' } as const;
const ANY = '';

const amount = (member: 'input' | 'output' | 'cached_input' | 'cache_write', title: string) =>
  ({ id: member, title, kind: 'number', cell: (row: ProposedPrice) => <Amount row={row} member={member} /> }) as const;

const COLUMNS: readonly ListColumn<ProposedPrice>[] = [
  {
    id: 'models',
    title: text.models,
    cell: ({ price, left_out: leftOut }) => (
      <>
        <code className={styles.models}>{price.models}</code>
        {leftOut.map((what) => (
          <span key={what} className={styles.was}>
            {text.leftOut[what]}
          </span>
        ))}
      </>
    ),
  },
  {
    id: 'change',
    title: text.change,
    cell: ({ change }) => <State tone={TONES[change]}>{text.changes[change]}</State>,
  },
  { id: 'provider', title: text.provider, rank: 'second', cell: ({ provider }) => provider },
  { ...amount('input', text.input), isLabeled: true },
  { ...amount('output', text.output), isLabeled: true },
  { ...amount('cached_input', text.cachedInput), rank: 'second' },
  { ...amount('cache_write', text.cacheWrite), rank: 'second' },
];

function Amount({
  row: { price, current },
  member,
}: {
  readonly row: ProposedPrice;
  readonly member: 'input' | 'output' | 'cached_input' | 'cache_write';
}) {
  const [now, before] = [price[member], current?.[member]];
  return (
    <>
      {now ?? <span className={styles.same}>{text.sameAsInput}</span>}
      {current === null || now === before ? null : (
        <span className={styles.was}>{text.before(before ?? text.sameAsInput)}</span>
      )}
    </>
  );
}

export function ImportPrices() {
  const { provider, q } = useSearch({ from: '/inside/import-prices' });
  const query = { provider, q };
  const proposal = useQuery({
    queryKey: ['proposal', query],
    queryFn: ({ signal }) => client.request('GET', '/v1/iam/prices/proposal', { query, signal }),
    placeholderData: (before) => before,
  });
  return (
    <Page title={text.importTitle} says={text.importSays} crumb={<Link to="/prices">{text.crumb}</Link>}>
      {proposal.isError ? <Problem error={proposal.error} onRetry={() => void proposal.refetch()} /> : null}
      {proposal.data === undefined ? (
        proposal.isPending ? (
          <p aria-busy="true">{common.loading}</p>
        ) : null
      ) : (
        <Proposal proposal={proposal.data} />
      )}
    </Page>
  );
}

function Proposal({ proposal }: { readonly proposal: PriceProposal }) {
  const { provider, q: searched, show = 'new' } = useSearch({ from: '/inside/import-prices' });
  const navigate = useNavigate({ from: '/import-prices' });
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  /** The filters whose prices are all selected; undefined: single prices are. */
  const [everyOf, setEveryOf] = useState<string>();
  const filters = JSON.stringify([provider, searched, show]);
  const isEvery = everyOf === filters;
  const accept = useAccept(proposal);
  const [typed, setTyped] = useTyped(searched ?? '', (q) => {
    void navigate({ search: (before) => ({ ...before, q: q === '' ? undefined : q }), replace: true });
  });
  const { source, currency, providers, data } = proposal;
  const rows = show === 'all' ? data : data.filter(({ change }) => change !== 'unchanged');
  const list = usePartList(rows);
  const chosen = isEvery ? rows : rows.filter(({ price }) => selected.has(price.models));
  const clear = (): void => {
    setSelected(new Set());
    setEveryOf(undefined);
  };
  return (
    <>
      <div className={styles.notes}>
        {source.currency === currency ? null : <Note tone="care">{text.otherCurrency(source.currency, currency)}</Note>}
        {accept.isSuccess ? (
          <Note tone="good" isLive>
            {text.accepted(accept.data)} <Link to="/prices">{text.crumb}</Link>
          </Note>
        ) : null}
        {accept.isError ? <AcceptError error={accept.error} /> : null}
      </div>
      <Tools end={text.source(source.name, source.version, source.date)}>
        <SearchField label={text.search} placeholder={text.searchFor} value={typed} onChange={setTyped} />
        <Select
          label={text.provider}
          isLabelHidden
          value={provider ?? ANY}
          onChange={(id) =>
            void navigate({ search: (before) => ({ ...before, provider: id === ANY ? undefined : id }) })
          }
          options={[
            { value: ANY, label: text.anyProvider },
            ...providers.map(({ id, name }) => ({ value: id, label: name })),
          ]}
        />
        <Segments
          label={text.show}
          value={show}
          onChange={(value) => void navigate({ search: (before) => ({ ...before, show: value }) })}
          options={PROPOSAL_SHOWN.map((value) => ({ value, label: text.shown[value] }))}
        />
      </Tools>
      <Chosen
        list={list}
        count={chosen.length}
        isEveryMatch={isEvery}
        texts={text}
        onEveryMatch={() => setEveryOf(filters)}
        onClear={clear}
      >
        {() => (
          <Button
            tone="primary"
            small
            isPending={accept.isPending}
            onPress={() => accept.mutate(chosen, { onSuccess: clear })}
          >
            {text.accept(chosen.length)}
          </Button>
        )}
      </Chosen>
      <ListTable
        label={text.importTitle}
        list={list}
        idOf={({ price }) => price.models}
        selected={new Set(chosen.map(({ price }) => price.models))}
        onSelect={(ids) => {
          setEveryOf(undefined);
          setSelected(ids);
        }}
        empty={<Empty title={text.noProposal}>{text.noProposalSays}</Empty>}
        columns={COLUMNS}
      />
    </>
  );
}

class ListMovedError extends Error {}

/** Writes the list in force with the chosen prices in it, if it is the list that the proposal was compared with. */
function useAccept({ version }: PriceProposal) {
  return useMutation({
    mutationFn: async (chosen: readonly ProposedPrice[]) => {
      const { data, etag } = await readPrices();
      if (data.version !== version) throw new ListMovedError();
      const replaced = new Set(chosen.map(({ price }) => price.models));
      const others = data.prices.filter(({ models }) => !replaced.has(models));
      await writePrices([...others, ...chosen.map(({ price }) => price)], etag);
      return chosen.length;
    },
    onSettled: () => pricesChanged(),
  });
}

function AcceptError({ error }: { readonly error: Error }) {
  const isMoved =
    error instanceof ListMovedError || (error instanceof ProblemError && error.code === 'precondition_failed');
  if (!isMoved) return <Refused error={error} />;
  return (
    <Note tone="care" isLive>
      {text.moved}
    </Note>
  );
}
