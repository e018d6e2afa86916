/**
 * The product's own wiring over the database of a test: settings as an operator gives them, telemetry that writes
 * nothing, and a store.
 */

import { randomUUID } from 'node:crypto';
import { serverTelemetry } from '../../src/cli/server-telemetry.ts';
import type { Secrets } from '../../src/config/config.ts';
import { formatConfigError } from '../../src/config/config-error.ts';
import { loadConfig } from '../../src/config/load.ts';
import { Passwords } from '../../src/identity/passwords.ts';
import { openStore } from '../../src/server/store.ts';
import type { ProcessIdentity, WiringContext } from '../../src/server/wiring-context.ts';

export const SECRET_KEY = 'a secret key of tests that is long enough';

/** Settings by their names in the environment, such as POSTERN_ROUTES. */
export type Settings = Readonly<Record<`POSTERN_${string}`, string>>;

export interface TestWiring extends WiringContext {
  readonly secrets: Secrets;
  readonly identity: ProcessIdentity;
}

const QUIET = {
  POSTERN_LOG_LEVEL: 'silent',
  POSTERN_LOG_DECISIONS_TO: 'off',
  POSTERN_HTTP_LISTEN: '127.0.0.1:0',
  POSTERN_GRPC_LISTEN: '127.0.0.1:0',
  POSTERN_SECRET_KEY: SECRET_KEY,
} satisfies Settings;

/** The store closes with the stack. */
export async function openWiring(
  databaseUrl: string,
  settings: Settings,
  stack: AsyncDisposableStack,
): Promise<TestWiring> {
  const loaded = loadConfig({ env: { ...QUIET, POSTERN_DATABASE_URL: databaseUrl, ...settings } });
  if (loaded.kind === 'invalid') throw new Error(loaded.errors.map(formatConfigError).join('\n'));
  const { config, secrets } = loaded;
  const telemetry = await serverTelemetry(loaded);
  const store = await openStore(config, secrets, telemetry);
  stack.defer(() => store.close());
  return { config, secrets, telemetry, store, identity: { id: randomUUID(), server: randomUUID() } };
}

let passwords: Promise<Passwords> | undefined;

/** The same for all files of a worker, because each start hashes a password. */
export function sharedPasswords(): Promise<Passwords> {
  passwords ??= Passwords.start({ maxRunning: 2 });
  return passwords;
}
