/** The policies of the tenant and those of all tenants. */

import { useNavigate, useSearch } from '@tanstack/react-router';
import type { Policy } from '../../../../client/index.ts';
import { usePolicies, useTenantZone } from '../../api/policies.ts';
import { useDenied } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { policies as text } from '../../text/en/policies.ts';
import { Button } from '../../ui/button.tsx';
import { Checkbox, SearchField, Segments } from '../../ui/field.tsx';
import { ListTable } from '../../ui/list.tsx';
import { ListEmpty } from '../../ui/list-empty.tsx';
import { State, Tags } from '../../ui/mark.tsx';
import { NoticeMark } from '../../ui/notices.tsx';
import { Page, Tools } from '../../ui/page.tsx';
import { Ago } from '../../ui/time.tsx';
import { useTyped } from '../../ui/use-typed.ts';
import { fieldsOf } from '../policy/draft.ts';
import { summaryText } from '../policy/summary.ts';
import styles from './policies.module.css';
import { POLICIES_EFFECTS, POLICIES_STATES } from './search.ts';

export function Policies() {
  const denied = useDenied('admin:policies');
  const zone = useTenantZone();
  const { q: searched, effect, state, notices } = useSearch({ from: '/inside/policies' });
  const navigate = useNavigate({ from: '/policies' });
  const [typed, setTyped] = useTyped(searched ?? '', (q) => {
    void navigate({ search: (before) => ({ ...before, q: q === '' ? undefined : q }), replace: true });
  });
  const list = usePolicies({
    q: searched,
    effect,
    mode: state === 'enabled' ? 'enforce' : state === 'report' ? 'report' : undefined,
    enabled: state === undefined ? undefined : state !== 'disabled',
    notices,
  });
  const isFiltered = searched !== undefined || effect !== undefined || state !== undefined || notices === true;
  const showAll = (): void => {
    setTyped('');
    void navigate({
      search: (before) => ({ ...before, q: undefined, effect: undefined, state: undefined, notices: undefined }),
    });
  };
  const create = (
    <Button tone="primary" disabledReason={denied} onPress={() => void navigate({ to: '/new-policy', search: {} })}>
      {text.create}
    </Button>
  );
  return (
    <Page title={text.title} says={text.says} actions={create}>
      <Tools>
        <SearchField label={text.search} placeholder={text.searchFor} value={typed} onChange={setTyped} />
        <Segments
          label={text.effect}
          value={effect ?? 'all'}
          onChange={(value) =>
            void navigate({ search: (before) => ({ ...before, effect: value === 'all' ? undefined : value }) })
          }
          options={(['all', ...POLICIES_EFFECTS] as const).map((value) => ({ value, label: text.effects[value] }))}
        />
        <Segments
          label={text.state}
          value={state ?? 'all'}
          onChange={(value) =>
            void navigate({ search: (before) => ({ ...before, state: value === 'all' ? undefined : value }) })
          }
          options={(['all', ...POLICIES_STATES] as const).map((value) => ({ value, label: text.states[value] }))}
        />
        <Checkbox
          isSelected={notices === true}
          onChange={(isOn) => void navigate({ search: (before) => ({ ...before, notices: isOn ? true : undefined }) })}
        >
          {common.onlyCare}
        </Checkbox>
      </Tools>
      <ListTable
        label={text.title}
        list={list}
        idOf={(policy) => policy.name}
        onOpen={({ name }) => void navigate({ to: '/policies/$name', params: { name } })}
        empty={<ListEmpty texts={text} onShowAll={isFiltered ? showAll : undefined} />}
        columns={[
          {
            id: 'name',
            title: text.name,
            cell: (policy) => (
              <>
                <span className={styles.name}>
                  {policy.name}
                  <NoticeMark notices={policy.notices} />
                </span>
                <span className={styles.says}>
                  {policy.description === '' ? summaryText(fieldsOf(policy), zone) : policy.description}
                </span>
              </>
            ),
          },
          { id: 'effect', title: text.effect, cell: (policy) => <Effect policy={policy} /> },
          { id: 'applies', title: text.appliesTo, cell: (policy) => <Audience policy={policy} /> },
          { id: 'actions', title: text.actions, rank: 'phoneOff', cell: ({ actions }) => <Tags values={actions} /> },
          { id: 'changed', title: text.changed, rank: 'second', cell: ({ updated_at: time }) => <Ago time={time} /> },
        ]}
      />
    </Page>
  );
}

function Effect({ policy: { effect, mode, enabled } }: { readonly policy: Policy }) {
  if (!enabled) return <State tone="off">{text.isOff}</State>;
  const tone = mode === 'report' ? 'care' : effect === 'deny' ? 'deny' : 'good';
  return <State tone={tone}>{text.effectStates[mode][effect]}</State>;
}

function Audience({ policy }: { readonly policy: Policy }) {
  const { applies_to: appliesTo, attached_roles: roles, global: isGlobal } = policy;
  if (appliesTo === 'everyone') return <>{isGlobal ? text.isGlobal : text.everyone}</>;
  return roles.length === 0 ? <State tone="care">{text.noRoleAttached}</State> : <Tags values={roles} />;
}
