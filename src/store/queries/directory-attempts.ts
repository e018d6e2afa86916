/** Attempts at a directory that came to nothing, because it could not be asked. */

import type { Knex } from 'knex';
import { runPrepared } from '../prepared.ts';
import { returnedBy } from './login-failures.ts';

const RETURN = { name: 'return_attempt', text: `with ${returnedBy('(select) as once', 1)} select` };

/** Account and address get the attempt back: one statement, as all who wait for a directory that hangs from one address have one row to share. */
export async function returnAttempt(
  q: Knex,
  { account, address }: { readonly account: Uint8Array; readonly address: Uint8Array },
): Promise<void> {
  await runPrepared(q, RETURN, [account, address]);
}
