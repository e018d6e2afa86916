/** The limits that cover a key: its own rate limit, and those that it shares with all keys and users of the tenant. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ApiKey, Limits } from '../../../../client/index.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { keys as text } from '../../text/en/keys.ts';
import { rates as ratesText } from '../../text/en/rates.ts';
import { usage } from '../../text/en/usage.ts';
import { Bar } from '../../ui/bar.tsx';
import { Small } from '../../ui/mark.tsx';
import { compact, count } from '../../ui/number.ts';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { distance, useNow } from '../../ui/time.tsx';
import { SaidRates } from '../rates/said-rates.tsx';
import styles from './budgets.module.css';

function useLimits(of: string) {
  const { client } = useTenant();
  const denied = useDenied('usage:read');
  const limits = useQuery({
    queryKey: [of, 'limits'],
    queryFn: ({ signal }) => client.tenants.limits(of, { signal }),
    enabled: denied === undefined,
  });
  return { denied, limits };
}

export function Budgets({ apiKey }: { readonly apiKey: ApiKey }) {
  const { rate_limit_rpm: rate, rate_limits: rates, tenant_id: tenant } = apiKey;
  const { denied, limits } = useLimits(tenant);
  return (
    <section className={styles.budgets}>
      <SectionHead
        title={text.budgets}
        link={
          <Link to="/usage" search={{ by: 'key' }}>
            {text.toUsage}
          </Link>
        }
      />
      <dl className={styles.list}>
        <dt>{text.rateOwn}</dt>
        <dd>{rate === null ? text.noRateLimit : text.atMost(count(rate))}</dd>
        {rates === null || rates.length === 0 ? null : (
          <>
            <dt>{ratesText.title}</dt>
            <dd>
              <SaidRates limits={rates} />
            </dd>
          </>
        )}
        {limits.data === undefined ? null : (
          <>
            <dt>{text.rateTenant}</dt>
            <dd>{saidRate(limits.data.rate_limit_rpm)}</dd>
            <dt>{text.monthTokens}</dt>
            <dd>
              <Month tokens={limits.data.monthly_tokens} />
            </dd>
          </>
        )}
      </dl>
      {denied === undefined ? null : <Small>{denied}</Small>}
      {limits.isError ? <Problem error={limits.error} onRetry={() => void limits.refetch()} /> : null}
    </section>
  );
}

/** The tenant's tokens in one line, above a list of keys. Shows nothing to a caller that may not read them. */
export function MonthLine() {
  const { id } = useTenant();
  const { limits } = useLimits(id);
  if (limits.data === undefined) return null;
  return (
    <div className={styles.line}>
      <span>{text.monthTokens}</span>
      <Month tokens={limits.data.monthly_tokens} />
      <Link to="/usage" search={{ by: 'key' }}>
        {text.toUsage}
      </Link>
    </div>
  );
}

function Month({ tokens }: { readonly tokens: Limits['monthly_tokens'] }) {
  const now = useNow();
  const { limit, used, remaining, reserved, resets_at: resetsAt } = tokens;
  const spent = used ?? 0;
  if (limit === null) return <span className={styles.month}>{`${compact(spent)}, ${usage.noLimit}`}</span>;
  return (
    <span className={styles.month}>
      <b>{usage.ofLimit(compact(spent), compact(limit))}</b>
      <Bar used={spent} limit={limit} reserved={reserved} />
      <small>
        {remaining === null ? null : usage.left(compact(remaining))}
        {resetsAt === null ? null : (
          <time dateTime={resetsAt} title={`${resetsAt.replace('T', ' ').slice(0, 16)} UTC`}>
            {`, ${text.resets} ${distance(Date.parse(resetsAt) - now)}`}
          </time>
        )}
      </small>
    </span>
  );
}

function saidRate({ limit }: Limits['rate_limit_rpm']): string {
  return limit === null ? usage.noLimit : text.atMost(count(limit));
}
