/** A tenant's usage of its limits, requested when its row comes into view. */

import { useQuery } from '@tanstack/react-query';
import type { Limits, Tenant } from '../../../../client/index.ts';
import { client } from '../../api/client.ts';
import { tenants as text } from '../../text/en/tenants.ts';
import { Bar } from '../../ui/bar.tsx';
import { Skeleton, State, type StateTone } from '../../ui/mark.tsx';
import { compact } from '../../ui/number.ts';
import { useSeen } from '../../ui/use-seen.ts';
import styles from './tenants.module.css';

type Name = 'monthly_tokens' | 'max_users' | 'rate_limit_rpm';

const CARE_FROM = 0.8;
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });

/** Returns the known limits. Only a cell in view requests them. */
function useLimits(id: string, isSeen: boolean): Limits | undefined {
  const { data } = useQuery({
    queryKey: [id, 'limits'],
    queryFn: ({ signal }) => client.tenants.limits(id, { signal }),
    enabled: isSeen,
  });
  return data;
}

/** The used part of the tenant's monthly tokens. This cell requests the limits for all cells of its row. */
export function TokensUsed({ id }: { readonly id: string }) {
  const { place, isSeen } = useSeen<HTMLSpanElement>();
  return (
    <span ref={place} className={styles.seen}>
      <Used one={useLimits(id, isSeen)?.monthly_tokens} />
    </span>
  );
}

export function UsedOf({ id, name }: { readonly id: string; readonly name: Exclude<Name, 'monthly_tokens'> }) {
  return (
    <span className={styles.seen}>
      <Used one={useLimits(id, false)?.[name]} />
    </span>
  );
}

function Used({ one }: { readonly one: Limits[Name] | undefined }) {
  if (one === undefined) return <Skeleton width={3} />;
  const { used, limit } = one;
  return (
    <>
      {used !== null ? compact(used) : limit === null ? null : text.notCounted}
      <small> {limit === null ? text.noLimit : text.of(compact(limit))}</small>
    </>
  );
}

export function Meter({ id, name }: { readonly id: string; readonly name: Name }) {
  const one = useLimits(id, false)?.[name];
  if (one === undefined || one.limit === null || one.used === null) return null;
  const reserved = 'reserved' in one && typeof one.reserved === 'number' ? one.reserved : 0;
  return (
    <div className={styles.meter}>
      <Bar used={one.used} limit={one.limit} reserved={reserved} />
      {name === 'monthly_tokens' && one.resets_at !== null ? (
        <small>
          {text.resets} <time dateTime={one.resets_at}>{day.format(new Date(one.resets_at))}</time>
        </small>
      ) : null}
    </div>
  );
}

/** Suspended or active; and whether the tokens of the month are nearly spent. */
export function TenantState({ tenant: { id, status } }: { readonly tenant: Tenant }) {
  const { tone, word } = stateOf(status, useLimits(id, false));
  return (
    <div className={styles.state}>
      <State tone={tone}>{word}</State>
    </div>
  );
}

function stateOf(
  status: Tenant['status'],
  limits: Limits | undefined,
): { readonly tone: StateTone; readonly word: string } {
  if (status === 'suspended') return { tone: 'off', word: text.states.suspended };
  const { limit = null, used = null } = limits?.monthly_tokens ?? {};
  if (limit !== null && used !== null) {
    if (used >= limit) return { tone: 'deny', word: text.states.out };
    if (used >= limit * CARE_FROM) return { tone: 'care', word: text.states.nearly };
  }
  return { tone: 'good', word: text.states.active };
}
