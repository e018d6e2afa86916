/** The policies of the tenant and those of all tenants. */

import { useNavigate, useSearch } from '@tanstack/react-router';
import type { Policy } from '../../../../client/index.ts';
import { usePolicies, useTenantZone } from '../../api/policies.ts';
import { useDenied } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { policies as text } from '../../text/en/policies.ts';
import { Checkbox } from '../../ui/field.tsx';
import { ListPage, OneOrAll } from '../../ui/list-page.tsx';
import { State, Tags } from '../../ui/mark.tsx';
import { NoticeMark } from '../../ui/notices.tsx';
import { Ago } from '../../ui/time.tsx';
import { fieldsOf } from '../policy/draft.ts';
import { summaryText } from '../policy/summary.ts';
import styles from './policies.module.css';
import { POLICIES_EFFECTS, POLICIES_STATES } from './search.ts';

export function Policies() {
  const zone = useTenantZone();
  const search = useSearch({ from: '/inside/policies' });
  const { q, effect, state, notices } = search;
  const navigate = useNavigate();
  const list = usePolicies({
    q,
    effect,
    mode: state === 'enabled' ? 'enforce' : state === 'report' ? 'report' : undefined,
    enabled: state === undefined ? undefined : state !== 'disabled',
    notices,
  });
  return (
    <ListPage
      texts={text}
      search={search}
      create="/new-policy"
      denied={useDenied('admin:policies')}
      filters={(set) => (
        <>
          <OneOrAll
            label={text.effect}
            values={POLICIES_EFFECTS}
            texts={text.effects}
            value={effect}
            onChange={(value) => set({ effect: value })}
          />
          <OneOrAll
            label={text.state}
            values={POLICIES_STATES}
            texts={text.states}
            value={state}
            onChange={(value) => set({ state: value })}
          />
          <Checkbox isSelected={notices === true} onChange={(isOn) => set({ notices: isOn ? true : undefined })}>
            {common.onlyCare}
          </Checkbox>
        </>
      )}
      list={list}
      idOf={({ name }) => name}
      onOpen={({ name }) => void navigate({ to: '/policies/$name', params: { name } })}
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
