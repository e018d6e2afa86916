/** Limits by model in words. */

import type { RateLimitRule } from '../../../../client/index.ts';
import { rates as text } from '../../text/en/rates.ts';
import { count } from '../../ui/number.ts';
import styles from './rates.module.css';

export function SaidRates({ limits }: { readonly limits: readonly RateLimitRule[] }) {
  return (
    <ul className={styles.said}>
      {limits.map((limit) => (
        <li key={JSON.stringify(limit)}>
          <code>{limit.models.join(', ')}</code> {saidNumbers(limit)}
        </li>
      ))}
    </ul>
  );
}

function saidNumbers({ requests_per_minute: requests, tokens_per_minute: tokens, parallel }: RateLimitRule): string {
  const parts = [
    requests === undefined ? [] : [text.said.requests(count(requests))],
    tokens === undefined ? [] : [text.said.tokens(count(tokens))],
    parallel === undefined ? [] : [text.said.parallel(count(parallel))],
  ];
  return parts.flat().join(', ');
}
