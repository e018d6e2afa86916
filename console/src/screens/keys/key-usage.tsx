/** The metered tokens and requests of a key on each of the last 30 days. */

import type { ApiKey } from '../../../../client/index.ts';
import { useDenied } from '../../api/session.ts';
import { keys as text } from '../../text/en/keys.ts';
import { usage as usageText } from '../../text/en/usage.ts';
import { Small } from '../../ui/mark.tsx';
import { count } from '../../ui/number.ts';
import { COUNTED, DaysChart } from '../usage/days.tsx';
import { lastDays } from '../usage/month.ts';
import { useDailyUsage, useUsageTime } from '../usage/queries.ts';

const DAYS = 30;

export function KeyUsage({ apiKey }: { readonly apiKey: ApiKey }) {
  const denied = useDenied('usage:read');
  return denied === undefined ? <Metered id={apiKey.id} /> : null;
}

function Metered({ id }: { readonly id: string }) {
  const days = lastDays(DAYS, useUsageTime(false));
  const usage = useDailyUsage(days, false, id);
  const total = usage.data?.total;
  return (
    <div>
      <DaysChart days={days} usage={usage} {...COUNTED} />
      {total === undefined ? null : (
        <Small>{text.inDays(DAYS, usageText.says(count(total.requests), count(total.total_tokens)))}</Small>
      )}
    </div>
  );
}
