/** Asks the API process to fetch the keys of an issuer soon. A gate opens no connection to an issuer. */

import type { IssuerKeyRefresh } from '../credential-cache/ports.ts';
import type { IssuerId } from '../domain/ids.ts';
import type { Database } from './database.ts';

/** The shortest interval between two fetches that unknown keys cause. */
const REFRESH_INTERVAL_MS = 5000;
/** Issuers whose last request this process remembers. Beyond them, a request costs a statement that changes nothing. */
const MAX_REMEMBERED = 10_000;

const REQUEST = {
  name: 'request_issuer_keys',
  text: `
    update issuer_keys set next_fetch_at = due.at
    from (
      select greatest(clock_timestamp(), attempted_at + interval '${REFRESH_INTERVAL_MS} milliseconds') as at
      from issuer_keys where issuer_id = $1
    ) due
    where issuer_id = $1 and next_fetch_at > due.at`,
};

interface KeyRequestsParts {
  readonly db: Database;
  readonly monotonicMs: () => number;
  readonly onFault: (error: unknown) => void;
}

/** @returns a port that asks for at most one fetch per issuer in REFRESH_INTERVAL_MS, for all processes together */
export function issuerKeyRequests({ db, monotonicMs, onFault }: KeyRequestsParts): IssuerKeyRefresh {
  const requestedAtMs = new Map<IssuerId, number>();
  return {
    request(id) {
      const nowMs = monotonicMs();
      const last = requestedAtMs.get(id);
      if (last !== undefined && nowMs - last < REFRESH_INTERVAL_MS) return;
      if (requestedAtMs.size >= MAX_REMEMBERED) requestedAtMs.clear();
      requestedAtMs.set(id, nowMs);
      db.query({ ...REQUEST, values: [id] }).catch(onFault);
    },
  };
}
