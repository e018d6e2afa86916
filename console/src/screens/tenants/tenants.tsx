/** All tenants, for platform administrators. */

import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { Tenant } from '../../../../client/index.ts';
import { useList } from '../../api/list.ts';
import { useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { tenants as text } from '../../text/en/tenants.ts';
import { Button } from '../../ui/button.tsx';
import { SearchField } from '../../ui/field.tsx';
import { Icon } from '../../ui/icon.tsx';
import { ListTable, TwoLines } from '../../ui/list.tsx';
import { OneOrAll } from '../../ui/list-page.tsx';
import { Empty } from '../../ui/mark.tsx';
import { count } from '../../ui/number.ts';
import { type Choice, Menu } from '../../ui/overlay.tsx';
import { Page, Tools } from '../../ui/page.tsx';
import { useTyped } from '../../ui/use-typed.ts';
import { type AskKind, TenantAsk } from './ask.tsx';
import { CreateDrawer } from './create-drawer.tsx';
import { EditDrawer } from './edit-drawer.tsx';
import { FindKey } from './find-key.tsx';
import { loadTenants, tenantsKey } from './load.ts';
import { Meter, TenantState, Used } from './quota.tsx';
import { TENANTS_SHOWN, TENANTS_SORTS } from './search.ts';

/** No tenant has these ids: ids have no underscore. */
const NEW = '_new';
const KEYS = '_keys';
const FIRST_TENANT = 'default';

interface Asking {
  readonly tenant: Tenant;
  readonly kind: AskKind;
}

export function Tenants() {
  const actingIn = useTenant().id;
  const { q: searched, status, sort = 'id', open } = useSearch({ from: '/inside/tenants' });
  const navigate = useNavigate({ from: '/tenants' });
  const [asking, setAsking] = useState<Asking>();
  const [typed, setTyped] = useTyped(searched ?? '', (q) => {
    void navigate({ search: (before) => ({ ...before, q: q === '' ? undefined : q }), replace: true });
  });
  const list = useList<'/v1/iam/tenants'>([...tenantsKey(actingIn), searched, status, sort], (cursor, signal) =>
    loadTenants({ q: searched, status, sort }, cursor, signal),
  );
  const show = (id: string | undefined): void => void navigate({ search: (before) => ({ ...before, open: id }) });
  const showAll = (): void => void navigate({ search: (before) => ({ ...before, q: undefined, status: undefined }) });
  const actIn = (id: string): void => void navigate({ to: '/', search: { tenant: id } });
  const choicesOf = (tenant: Tenant): readonly Choice[] => {
    const stays = tenant.id === FIRST_TENANT ? text.firstStays : undefined;
    const ask = (kind: AskKind): Choice => ({
      id: kind,
      label: text[kind],
      isDanger: kind !== 'activate',
      disabledReason: kind === 'activate' ? undefined : stays,
      onChoose: () => setAsking({ tenant, kind }),
    });
    return [
      { id: 'edit', label: text.edit, onChoose: () => show(tenant.id) },
      {
        id: 'start',
        label: text.start,
        onChoose: () => void navigate({ to: '/onboarding', search: { tenant: tenant.id } }),
      },
      { id: 'act', label: text.actIn, onChoose: () => actIn(tenant.id) },
      ask(tenant.status === 'suspended' ? 'activate' : 'suspend'),
      ask('delete'),
    ];
  };
  return (
    <Page
      title={text.title}
      says={text.says}
      actions={
        <>
          <Button onPress={() => show(KEYS)}>
            <Icon name="search" />
            {text.findKey}
          </Button>
          <Button tone="primary" onPress={() => show(NEW)}>
            <Icon name="plus" />
            {text.create}
          </Button>
        </>
      }
    >
      <Tools end={text.resetSays}>
        <SearchField label={text.search} placeholder={text.searchFor} value={typed} onChange={setTyped} />
        <OneOrAll
          label={text.state}
          values={TENANTS_SHOWN}
          texts={{ ...text.shown, all: common.all }}
          value={status}
          onChange={(value) => void navigate({ search: (before) => ({ ...before, status: value }) })}
        />
      </Tools>
      <ListTable
        label={text.title}
        list={list}
        idOf={({ id }) => id}
        onOpen={({ id }) => show(id)}
        sort={sort}
        onSort={(wanted) =>
          void navigate({
            search: (before) => ({ ...before, sort: TENANTS_SORTS.find((known) => known === wanted) }),
          })
        }
        empty={
          <Empty title={text.empty} action={<Button onPress={showAll}>{text.showAll}</Button>}>
            {text.emptySays}
          </Empty>
        }
        columns={[
          {
            id: 'tenant',
            title: text.tenant,
            sort: 'id',
            cell: ({ id, name }) => <TwoLines name={name} second={<code>{id}</code>} />,
          },
          {
            id: 'tokens',
            title: text.tokens,
            sort: '-share',
            rank: 'phoneOff',
            cell: ({ limits }) => <Meter one={limits?.monthly_tokens} />,
          },
          {
            id: 'used',
            title: text.used,
            sort: '-tokens',
            kind: 'number',
            isLabeled: true,
            cell: ({ limits }) => <Used one={limits?.monthly_tokens} />,
          },
          {
            id: 'requests',
            title: text.requests,
            sort: '-requests',
            kind: 'number',
            isLabeled: true,
            cell: ({ activity }) => (activity === undefined ? null : count(activity.requests)),
          },
          {
            id: 'denied',
            title: text.denied,
            sort: '-denied',
            kind: 'number',
            isLabeled: true,
            cell: ({ activity }) => (activity === undefined ? null : count(activity.denied)),
          },
          {
            id: 'users',
            title: text.users,
            kind: 'number',
            rank: 'second',
            cell: ({ limits }) => <Used one={limits?.max_users} />,
          },
          {
            id: 'rate',
            title: text.rate,
            kind: 'number',
            rank: 'second',
            cell: ({ limits }) => <Used one={limits?.rate_limit_rpm} />,
          },
          { id: 'state', title: text.state, cell: (tenant) => <TenantState tenant={tenant} /> },
          {
            id: 'actions',
            title: text.actions,
            kind: 'end',
            isTitleHidden: true,
            cell: (tenant) => <Menu label={common.moreFor(tenant.name)} choices={choicesOf(tenant)} />,
          },
        ]}
      />
      {asking === undefined ? null : <TenantAsk {...asking} onClose={() => setAsking(undefined)} />}
      {open === NEW ? (
        <CreateDrawer
          onClose={() => show(undefined)}
          onCreated={(id) => void navigate({ to: '/onboarding', search: { tenant: id } })}
        />
      ) : null}
      {open === KEYS ? <FindKey onClose={() => show(undefined)} /> : null}
      {open === undefined || open === NEW || open === KEYS ? null : (
        <EditDrawer key={open} id={open} onClose={() => show(undefined)} onAct={actIn} />
      )}
    </Page>
  );
}
