import { randomBytes } from 'node:crypto';
import type { Config, Secrets } from '../config/config.ts';
import { type BootstrapOutcome, bootstrap } from '../iam/users/bootstrap.ts';
import type { Passwords } from '../identity/passwords.ts';
import type { Store } from './store.ts';

/**
 * Creates the first administrator if there is none. If several servers start together, one of them creates it. Rejects
 * as `bootstrap` does.
 */
export function ensureAdministrator(
  config: Config,
  secrets: Secrets,
  store: Store,
  passwords: Passwords,
): Promise<BootstrapOutcome> {
  const parts = { db: store.db, passwords, now: Date.now, random: (size: number) => randomBytes(size) };
  return bootstrap(parts, { email: config.bootstrap.email, password: secrets.bootstrapPassword });
}
