/** The models that were used and have no price. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useMe, useTenant } from '../../api/session.ts';
import { spend as text } from '../../text/en/spend.ts';
import { Note } from '../../ui/mark.tsx';
import { count } from '../../ui/number.ts';
import type { Days } from '../usage/month.ts';
import { useUsageOf } from '../usage/queries.ts';
import styles from './spend.module.css';

const PAGE = 200;
const SHOWN = 8;

interface UnpricedProps {
  readonly days: Days;
  readonly isPlatform: boolean;
  readonly requests: number;
}

export function Unpriced({ days, isPlatform, requests }: UnpricedProps) {
  const { id: actingIn } = useTenant();
  const { platform_admin: maySet } = useMe();
  const { id, client, tenant } = useUsageOf(isPlatform);
  const query = { ...tenant, ...days, group_by: 'model', sort: '-requests', limit: PAGE } as const;
  const models = useQuery({
    queryKey: [actingIn, 'usage', id, 'unpriced', days],
    queryFn: async ({ signal }) => {
      const { data } = await client.request('GET', '/v1/iam/usage', { query, signal });
      return data.flatMap(({ model, unpriced_requests: unpriced = 0 }) =>
        model === undefined || model === null || unpriced === 0 ? [] : [model],
      );
    },
  });
  return (
    <div className={styles.unpriced}>
      <Note tone="care">
        {requests === 1 ? text.unpricedOne : text.unpriced(count(requests))}
        <ul className={styles.models}>
          {(models.data ?? []).slice(0, SHOWN).map((model) => (
            <li key={model}>
              {maySet ? (
                <Link to="/prices" search={{ add: true, model }} aria-label={text.setPrice(model)}>
                  <code>{model}</code>
                </Link>
              ) : (
                <code>{model}</code>
              )}
            </li>
          ))}
          <li>
            <Link to="/prices">{text.toPrices}</Link>
          </li>
        </ul>
      </Note>
    </div>
  );
}
