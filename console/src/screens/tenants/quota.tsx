/** A tenant's usage of its limits, as its row of the list has them. */

import type { Limits, Tenant } from '../../../../client/index.ts';
import { tenants as text } from '../../text/en/tenants.ts';
import { Bar } from '../../ui/bar.tsx';
import { State, type StateTone } from '../../ui/mark.tsx';
import { compact } from '../../ui/number.ts';
import styles from './tenants.module.css';

const CARE_FROM = 0.8;
const moment = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

export function Used({ one }: { readonly one: Limits['monthly_tokens' | 'max_users' | 'rate_limit_rpm'] | undefined }) {
  if (one === undefined) return null;
  const { used, limit } = one;
  return (
    <span className={styles.seen}>
      {used !== null ? compact(used) : limit === null ? null : text.notCounted}
      <small>
        {used === null || limit !== null ? ' ' : ', '}
        {limit === null ? text.noLimit : text.of(compact(limit))}
      </small>
    </span>
  );
}

export function Meter({ one }: { readonly one: Limits['monthly_tokens'] | undefined }) {
  if (one === undefined || one.limit === null || one.used === null) return null;
  const { used, limit, reserved, resets_at: resetsAt, runs_out_at: runsOutAt } = one;
  return (
    <div className={styles.meter}>
      <Bar used={used} limit={limit} reserved={reserved} />
      {runsOutAt !== null ? (
        <small className={styles.pace}>
          {text.pace} <time dateTime={runsOutAt}>{day.format(new Date(runsOutAt))}</time>
        </small>
      ) : resetsAt !== null ? (
        <small>
          {text.resets} <time dateTime={resetsAt}>{moment.format(new Date(resetsAt))}</time>
        </small>
      ) : null}
    </div>
  );
}

/** Suspended or active; and whether the tokens of the month are nearly spent. */
export function TenantState({ tenant }: { readonly tenant: Tenant }) {
  const { tone, word } = stateOf(tenant);
  return (
    <div className={styles.state}>
      <State tone={tone}>{word}</State>
    </div>
  );
}

function stateOf({ status, limits }: Tenant): { readonly tone: StateTone; readonly word: string } {
  if (status === 'suspended') return { tone: 'off', word: text.states.suspended };
  const { limit = null, used = null } = limits?.monthly_tokens ?? {};
  if (limit !== null && used !== null) {
    if (used >= limit) return { tone: 'deny', word: text.states.out };
    if (used >= limit * CARE_FROM) return { tone: 'care', word: text.states.nearly };
  }
  return { tone: 'good', word: text.states.active };
}
