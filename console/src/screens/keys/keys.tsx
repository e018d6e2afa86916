/** The tenant's API keys; without the right to manage them, the caller's own. */

import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { ApiKey, ApiKeysToRevoke, IssuedApiKey } from '../../../../client/index.ts';
import { serverNow } from '../../api/clock.ts';
import { nameOf, shownKey, useName } from '../../api/principal.tsx';
import { keySearch } from '../../api/search-text.ts';
import { useDenied } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { keys as text } from '../../text/en/keys.ts';
import { Button } from '../../ui/button.tsx';
import { Chip } from '../../ui/chip.tsx';
import { Chosen } from '../../ui/chosen.tsx';
import { SearchField } from '../../ui/field.tsx';
import { type ListColumn, ListTable, TwoLines } from '../../ui/list.tsx';
import { ListEmpty } from '../../ui/list-empty.tsx';
import { OneOrAll } from '../../ui/list-page.tsx';
import { Id, Small, State, shortened, Tags } from '../../ui/mark.tsx';
import { Page, Tools } from '../../ui/page.tsx';
import { Select } from '../../ui/select.tsx';
import { Ago, Until } from '../../ui/time.tsx';
import { useTyped } from '../../ui/use-typed.ts';
import { MonthLine } from './budgets.tsx';
import { CreateKey } from './create-key.tsx';
import { KeyDrawer } from './key-drawer.tsx';
import styles from './keys.module.css';
import { useKeys } from './queries.ts';
import { RevokeSeveral } from './revoke-key.tsx';
import { KEY_CARES, KEY_FILTERS, type KeysSearch, keysSearch } from './search.ts';
import { ShownOnce } from './shown-once.tsx';
import { KeyOwner, KeyState, SOON_MS } from './state.tsx';

const NEWEST_FIRST = '-created_at';
const HOUR_MS = 3_600_000;
const NONE: ReadonlySet<string> = new Set();

const COLUMNS: readonly ListColumn<ApiKey>[] = [
  {
    id: 'name',
    title: text.name,
    sort: 'name',
    cell: (key) => <TwoLines name={nameOf(key)} second={key.name === null ? undefined : key.description} />,
  },
  { id: 'key', title: text.key, cell: (key) => <KeyText apiKey={key} /> },
  {
    id: 'owner',
    title: text.owner,
    rank: 'second',
    cell: (key) => <KeyOwner apiKey={key} />,
  },
  { id: 'scopes', title: text.scopes, rank: 'second', cell: (key) => <Tags values={key.scopes} /> },
  { id: 'used', title: text.lastUse, sort: '-last_used_at', cell: (key) => <LastUse time={key.last_used_at} /> },
  {
    id: 'expires',
    title: text.expires,
    sort: 'expires_at',
    rank: 'phoneOff',
    cell: (key) => (
      <span className={styles.nowrap}>
        <Until time={key.expires_at} />
      </span>
    ),
  },
  {
    id: 'created',
    title: text.created,
    sort: NEWEST_FIRST,
    rank: 'second',
    cell: (key) => (
      <span className={styles.nowrap}>
        <Ago time={key.created_at} />
      </span>
    ),
  },
  { id: 'state', title: text.state, cell: (key) => <KeyState apiKey={key} /> },
];

export function Keys() {
  const search = useSearch({ from: '/inside/keys' });
  const navigate = useNavigate({ from: '/keys' });
  const denied = useDenied('admin:keys');
  const [typed, setTyped] = useTyped(search.q ?? '', (q) => {
    void navigate({ search: (before) => ({ ...before, q: q === '' ? undefined : q }), replace: true });
  });
  const [selected, setSelected] = useState(NONE);
  const [isEveryMatch, setEveryMatch] = useState(false);
  const [isRevoking, setRevoking] = useState(false);
  const [issued, setIssued] = useState<IssuedApiKey>();
  const select = (ids: ReadonlySet<string>): void => {
    setSelected(ids);
    setEveryMatch(false);
  };
  const show = (change: Partial<KeysSearch>): void => {
    select(NONE);
    void navigate({ search: (before) => ({ ...before, open: undefined, act: undefined, ...change }) });
  };
  const showAll = (): void => {
    setTyped('');
    show({ q: undefined, status: undefined, care: undefined, user: undefined, creator: undefined, issuer: undefined });
  };
  const query = queryOf(search);
  const sort = search.sort ?? NEWEST_FIRST;
  const list = useKeys({ ...query, sort });
  return (
    <Page
      title={text.title}
      says={text.says}
      actions={
        <Button tone="primary" onPress={() => show({ open: 'new' })}>
          {text.create}
        </Button>
      }
    >
      <MonthLine />
      <Tools end={text.lag}>
        <SearchField label={text.search} placeholder={text.searchFor} value={typed} onChange={setTyped} />
        <OneOrAll
          label={text.status}
          values={KEY_FILTERS}
          texts={text.filters}
          value={search.status}
          onChange={(status) => show({ status })}
        />
        <Select
          label={text.care}
          isLabelHidden
          value={search.care ?? 'any'}
          onChange={(care) => show({ care: care === 'any' ? undefined : care })}
          options={(['any', ...KEY_CARES] as const).map((value) => ({ value, label: text.cares[value] }))}
        />
        {search.user === undefined ? null : (
          <UserChip
            label={text.ownedBy}
            name={text.owner}
            id={search.user}
            onRemove={() => show({ user: undefined })}
          />
        )}
        {search.creator === undefined ? null : (
          <UserChip
            label={text.byCreator}
            name={text.createdBy}
            id={search.creator}
            onRemove={() => show({ creator: undefined })}
          />
        )}
        {search.issuer === undefined ? null : (
          <Chip label={common.removeOf(text.byIssuer)} onRemove={() => show({ issuer: undefined })}>
            {`${text.issuer}: ${search.issuer}`}
          </Chip>
        )}
      </Tools>
      <Chosen
        list={list}
        count={selected.size}
        isEveryMatch={isEveryMatch}
        texts={text}
        onEveryMatch={isRevocable(search) ? () => setEveryMatch(true) : undefined}
        onClear={() => select(NONE)}
      >
        {(total) => (
          <Button tone="danger" small disabledReason={denied} onPress={() => setRevoking(true)}>
            {total === undefined ? text.revokeSeveral(selected.size) : text.revokeAll(total)}
          </Button>
        )}
      </Chosen>
      <ListTable
        label={text.title}
        list={list}
        idOf={(key: ApiKey) => key.id}
        onOpen={({ id }) => show({ open: id })}
        {...(denied === undefined ? { selected, onSelect: select } : {})}
        sort={sort}
        onSort={(next) => show(keysSearch({ sort: next }))}
        empty={
          <ListEmpty
            texts={denied === undefined ? text : text.own}
            onShowAll={Object.keys(query).length === 0 ? undefined : showAll}
          />
        }
        columns={COLUMNS}
      />
      {search.open === 'new' ? (
        <CreateKey
          issuer={search.issuer}
          onClose={() => show({})}
          onCreated={(key) => {
            // A key without a secret has nothing to show once.
            show(key.proof === null ? {} : { open: key.id });
            if (key.proof === null) setIssued(key);
          }}
        />
      ) : null}
      {search.open === undefined || search.open === 'new' ? null : (
        <KeyDrawer
          key={search.open}
          id={search.open}
          edited={search.act}
          onEdit={(act) => show({ open: search.open, act })}
          onClose={() => show({})}
        />
      )}
      {issued === undefined ? null : <ShownOnce issued={issued} onClose={() => setIssued(undefined)} />}
      {isRevoking ? (
        <RevokeSeveral
          keys={isEveryMatch ? revocationsOf(query) : [{ ids: [...selected] }]}
          onClose={() => setRevoking(false)}
          onDone={() => {
            setRevoking(false);
            select(NONE);
          }}
        />
      ) : null}
    </Page>
  );
}

/** The shown part of the key, and its rate limit. */
function KeyText({ apiKey }: { readonly apiKey: ApiKey }) {
  const { prefix, proof, rate_limit_rpm: rate } = apiKey;
  return (
    <span className={proof === null ? styles.nowrap : styles.proof}>
      {proof === null ? <Id value={prefix} shown={shownKey(apiKey)} /> : <code>{shownKey(apiKey)}</code>}
      {proof?.ambiguous === true ? <State tone="care">{text.isAmbiguous}</State> : null}
      {rate === null ? null : <Small>{text.rateOf(rate)}</Small>}
    </span>
  );
}

function LastUse({ time }: { readonly time: string | null }) {
  if (time === null) return <span className={styles.nowrap}>{text.unused}</span>;
  return (
    <span className={styles.nowrap}>
      <span className={styles.onPhone}>{text.used} </span>
      <Ago time={time} />
    </span>
  );
}

interface UserChipProps {
  readonly label: string;
  readonly name: string;
  readonly id: string;
  readonly onRemove: () => void;
}

function UserChip({ label, name, id, onRemove }: UserChipProps) {
  const user = useName('user', id) ?? shortened(id);
  return (
    <Chip label={common.removeOf(label)} onRemove={onRemove}>
      {`${name}: ${user}`}
    </Chip>
  );
}

/** A text that begins as keys do is a prefix; anything else is searched for. */
function queryOf({ q, status, care, user, creator, issuer }: KeysSearch) {
  return {
    ...(q === undefined ? {} : keySearch(q)),
    ...(status === undefined ? {} : { status: status === 'expiring' ? ('active' as const) : status }),
    ...(status === 'expiring' ? { expires_before: soon() } : {}),
    ...(care === undefined ? {} : CARES[care]),
    ...(user === undefined ? {} : { user_id: user }),
    ...(creator === undefined ? {} : { created_by: creator }),
    ...(issuer === undefined ? {} : { issuer }),
  };
}

const CARES = {
  'unused-30': { unused_days: 30 },
  'unused-90': { unused_days: 90 },
  'unused-365': { unused_days: 365 },
  'wider-than-used': { wider_than_used: true },
  'without-expiry': { without_expiry: true },
} as const;

type Query = ReturnType<typeof queryOf>;

/** A revocation takes no filter by use, because records may be missing, and a revoked key cannot be revoked again. */
function isRevocable({ care, status }: KeysSearch): boolean {
  return care !== 'wider-than-used' && status !== 'revoked';
}

const REVOCABLE = ['active', 'disabled', 'expired'] as const;

/** The requests that revoke all keys that match. Each takes one status. */
function revocationsOf({ status, ...others }: Query): readonly ApiKeysToRevoke[] {
  return REVOCABLE.filter((one) => status === undefined || one === status).map((one) => ({
    filter: { ...others, status: one },
  }));
}

/** To the hour, so that the same question is not asked again and again. */
function soon(): string {
  return new Date(Math.ceil((serverNow() + SOON_MS) / HOUR_MS) * HOUR_MS).toISOString();
}
