/**
 * A whole platform: the server as a process, with a database of its own, behind a real Envoy in front of an upstream
 * with a ledger.
 */

import { startUpstream, type Upstream } from '../../../src/demo/upstream.ts';
import { type FreshDatabase, freshDatabase } from '../../support/database.ts';
import { type Edge, type EditConfig, startEdge } from '../../support/envoy.ts';
import { ADMIN, login, SECRET_KEY } from './client.ts';
import { openStand, type Server } from './postern.ts';

export interface Platform {
  readonly database: FreshDatabase;
  readonly server: Server;
  readonly upstream: Upstream;
  readonly edge: Edge;
  /** The platform administrator's access token. */
  readonly admin: string;
  /** Stops all parts. */
  close(): Promise<void>;
}

/**
 * Starts all parts and logs the administrator in. If one part cannot start, the others are stopped.
 * @param settings environment variables of the server, besides its database, its secret key and the administrator's
 *   password
 * @param edit changes Envoy's configuration
 * @param begin starts the upstream; default: the one of the demonstration
 */
export async function openPlatform(
  settings: NodeJS.ProcessEnv = {},
  edit?: EditConfig,
  begin: () => Promise<Upstream> = () => startUpstream('127.0.0.1', 0),
): Promise<Platform> {
  await using starting = new AsyncDisposableStack();
  const database = await freshDatabase();
  starting.defer(() => database.close());
  const stand = await openStand();
  starting.defer(() => stand.close());
  const upstream = await begin();
  starting.defer(() => upstream.close());
  const server = await stand.serve({
    POSTERN_DATABASE_URL: database.url,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
    ...settings,
  });
  const { grpc, http } = server;
  const edge = await startEdge({ grpc, http, upstream: `127.0.0.1:${upstream.port}` }, edit);
  starting.defer(() => edge.stop());
  const admin = await login(http);
  const started = starting.move();
  return { database, server, upstream, edge, admin, close: () => started.disposeAsync() };
}
