/** Each limit of the tenant beside what is used of it. */

import { useQuery } from '@tanstack/react-query';
import type { Limits as AllLimits } from '../../../../client/index.ts';
import { useTenant } from '../../api/session.ts';
import { usage as text } from '../../text/en/usage.ts';
import { Bar } from '../../ui/bar.tsx';
import { compact } from '../../ui/number.ts';
import { Problem } from '../../ui/problem.tsx';
import { Until } from '../../ui/time.tsx';
import styles from './limits.module.css';

const NAMES = ['monthly_tokens', 'rate_limit_rpm', 'max_tokens_per_request', 'max_users', 'max_collections'] as const;
type Name = (typeof NAMES)[number];

/** @param of another tenant than the one that the caller acts in */
export function Limits({ of }: { readonly of?: string }) {
  const tenant = useTenant();
  const id = of ?? tenant.id;
  const { client } = tenant;
  const limits = useQuery({ queryKey: [id, 'limits'], queryFn: ({ signal }) => client.tenants.limits(id, { signal }) });
  if (limits.isError) return <Problem error={limits.error} onRetry={() => void limits.refetch()} />;
  return (
    <section className={styles.limits} aria-label={text.limits} aria-busy={limits.isPending}>
      {limits.data === undefined ? null : (
        <>
          {NAMES.map((name) => (
            <One
              key={name}
              title={text.limitNames[name]}
              state={limits.data[name]}
              isByMinute={name === 'rate_limit_rpm'}
            />
          ))}
          {limits.data.rate_limits.map((state) => (
            <One
              key={`${state.dimension} ${state.models.join(' ')}`}
              title={text.forModels(text.rateNames[state.dimension], state.models.join(', '))}
              state={state}
              isByMinute
            />
          ))}
        </>
      )}
    </section>
  );
}

interface OneProps {
  readonly title: string;
  readonly state: AllLimits[Name] | AllLimits['rate_limits'][number];
  readonly isByMinute: boolean;
}

function One({ title, state, isByMinute }: OneProps) {
  const { limit, used, remaining, resets_at: resetsAt } = state;
  const reserved = state.reserved ?? 0;
  return (
    <div className={styles.limit}>
      <h2>{title}</h2>
      <strong>{said(limit, used)}</strong>
      {limit === null || used === null ? null : <Bar used={used} limit={limit} reserved={reserved} />}
      {remaining === null ? null : (
        <small>
          {text.left(compact(remaining))}
          {reserved > 0 ? `, ${text.reserved(compact(reserved))}` : ''}
        </small>
      )}
      {resetsAt === null ? null : isByMinute ? (
        <small>{text.resetsSoon}</small>
      ) : (
        <small>
          {text.resets} <Until time={resetsAt} />
        </small>
      )}
    </div>
  );
}

function said(limit: number | null, used: number | null): string {
  if (limit === null) return used === null ? text.noLimit : `${compact(used)}, ${text.noLimit}`;
  return used === null ? text.atMost(compact(limit)) : text.ofLimit(compact(used), compact(limit));
}
