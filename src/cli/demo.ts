/** `postern demo`: the server, a stand-in AI upstream and a real Envoy in front of both, with something to try. */

import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { envName } from '../config/setting.ts';
import { startDemoIssuer } from '../demo/issuer.ts';
import { startUpstream, type Upstream } from '../demo/upstream.ts';
import { Passwords } from '../identity/passwords.ts';
import { ensureAdministrator } from '../server/administrator.ts';
import { openStore, prepareStore } from '../server/store.ts';
import type { Arguments } from './arguments.ts';
import { configOrRefuse, InvalidConfigError, type LoadedConfig, sourcesOf } from './configuration.ts';
import { busyAddresses, type DemoAddress, demoOrigins, reachable } from './demo-addresses.ts';
import { banner } from './demo-banner.ts';
import { sendFirstRequests } from './demo-first-requests.ts';
import { seedDemo, seedWebhook } from './demo-seed.ts';
import { seedWorkload } from './demo-workload.ts';
import { findEnvoy } from './envoy.ts';
import { placeAddresses, splitAddress } from './envoy-config.ts';
import { startEnvoy } from './envoy-process.ts';
import { verifyingUpstreamToken } from './envoy-upstream-token.ts';
import { serverTelemetry } from './server-telemetry.ts';
import { stopSignal } from './signals.ts';
import { startSupervised } from './supervisor.ts';
import { operatorParts } from './with-store.ts';

const DEFAULT_LISTEN = '127.0.0.1:10000';
const DEFAULT_ISSUER_LISTEN = '127.0.0.1:8082';
const UPSTREAM_PORT = 8081;
const SERVING_TIMEOUT_MS = 8000;
const SERVING_POLL_MS = 50;
const ENVOY_CONFIG = new URL('../../envoy/demo.yaml', import.meta.url);
const TOKEN_FILTER = new URL('../../envoy/upstream-token.yaml', import.meta.url);

/**
 * Defaults of the demo: few log lines, the client's address comes from the Envoy on this machine, and the upstream gets
 * signed tokens.
 */
const DEMO_DEFAULTS: Readonly<Record<string, string>> = {
  'log.level': 'warn',
  'http.trusted-proxies': '["127.0.0.0/8", "::1/128"]',
  'upstream-token.audience': 'demo-platform',
};

interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

/** The server fetches the keys of the demo's issuer from loopback, and sends events to the same address. */
const allowedHosts = ({ config }: LoadedConfig, listen: string) =>
  [
    ['issuers.allowed-hosts', [...config.issuers.allowedHosts, listen]],
    ['webhooks.allowed-hosts', [...config.webhooks.allowedHosts, listen]],
  ] as const;

export async function demo(args: Arguments): Promise<number> {
  const listen = process.env['POSTERN_DEMO_LISTEN'] || DEFAULT_LISTEN;
  const issuerListen = process.env['POSTERN_DEMO_ISSUER_LISTEN'] || DEFAULT_ISSUER_LISTEN;
  const issuerAt = issuerAddress(issuerListen);
  const loaded = await loadDemo(args, listen, issuerListen);
  const addresses = demoAddresses(loaded, listen, issuerAt);
  const stop = stopSignal();
  const busy = await busyAddresses(addresses);
  if (busy.length > 0) {
    process.stderr.write(`${busy.join('\n')}\n`);
    return 1;
  }
  await using running = new AsyncDisposableStack();
  const ended = await run(loaded, { listen, issuerAt }, stop, running);
  if (ended === 'stopped') return 0;
  process.stderr.write(`${ended}\n`);
  return 1;
}

/** Starts all parts in the order of their dependencies, and waits. `running` stops them in reverse order. */
async function run(
  loaded: LoadedConfig,
  { listen, issuerAt }: { readonly listen: string; readonly issuerAt: HostAndPort },
  stop: Promise<void>,
  running: AsyncDisposableStack,
): Promise<'stopped' | string> {
  const { config, secrets } = loaded;
  const stopped = stop.then(() => 'stopped' as const);
  const search = await Promise.race([findEnvoy(process.env, (line) => process.stdout.write(`${line}\n`)), stopped]);
  if (search === 'stopped') return search;
  if (search.kind === 'missing') return search.message;

  const telemetry = await serverTelemetry(loaded);
  const opened = await openStore(config, secrets, telemetry);
  running.defer(() => opened.close());
  const store = await prepareStore(opened, config, telemetry);
  const passwords = await Passwords.start();
  const administrator = await ensureAdministrator(config, secrets, store, passwords);
  // The server starts afterwards, so no cache is out of date.
  const parts = { ...(await operatorParts(store.db)), passwords };
  const { made, ...access } = await seedDemo(parts);
  const issuer = await startDemoIssuer(issuerAt.host, issuerAt.port);
  running.defer(() => issuer.close());
  const workloadToken = await seedWorkload(parts, issuer, config.issuers);
  const { secretKey, otherSecretKey } = store;
  const sending = { keys: { secretKey, otherSecretKey }, fetch: { allowedHosts: config.webhooks.allowedHosts } };
  await seedWebhook({ ...parts, ...sending }, issuer);
  const started = await startSupervised(loaded, store, telemetry, ['gate', 'api'], stop);
  if (started.kind === 'stopped') return started.kind;
  if (started.kind === 'refused') return 'Postern did not start.';
  const { server } = started;
  running.defer(() => server.close());
  const upstream = await startUpstreamNear('127.0.0.1', UPSTREAM_PORT);
  running.defer(() => upstream.close());

  const http = reachable(server.addresses.http ?? '');
  const ledger = `${upstream.host}:${upstream.port}`;
  const places = {
    edge: listen,
    'postern-grpc': reachable(server.addresses.grpc),
    'postern-http': http,
    upstream: ledger,
  };
  const [demo, filter] = await Promise.all([readFile(ENVOY_CONFIG, 'utf8'), readFile(TOKEN_FILTER, 'utf8')]);
  const text = verifyingUpstreamToken(demo, filter, config.upstreamToken);
  const envoy = await startEnvoy({
    binary: search.path,
    config: placeAddresses(text, { admin: '127.0.0.1:0', places }),
    concurrency: 2,
  });
  running.defer(() => envoy.stop());

  const edge = reachable(envoy.listeners.get('edge') ?? listen);
  if (!(await serves(edge, stop))) {
    const reasons = server.unready();
    return `Requests do not come through Envoy: ${reasons.length > 0 ? `Postern is not ready (${reasons.join('; ')})` : 'its readiness check does not answer'}.`;
  }
  await sendFirstRequests(edge, made);
  process.stdout.write(
    banner({
      envoy: edge,
      http,
      admin: reachable(server.addresses.admin),
      upstream: ledger,
      issuer: issuer.url,
      events: issuer.eventsUrl,
      workloadToken,
      administrator,
      administratorEmail: config.bootstrap.email,
      ...access,
    }),
  );
  const lost = envoy.exited.then(() => `Envoy exited unexpectedly: ${envoy.output().trim().split('\n').at(-1) ?? ''}`);
  return Promise.race([stopped, lost]);
}

async function loadDemo(args: Arguments, listen: string, issuerListen: string): Promise<LoadedConfig> {
  const sources = await sourcesOf(args);
  const given = configOrRefuse(sources);
  const absent = given.settings.filter(({ raw }) => raw === undefined).map(({ setting }) => setting.path);
  // Envoy removes the port from the Host header, so the setting must name the origins of its address.
  const origins = demoOrigins(listenAddress(listen));
  const demoDefaults = {
    ...DEMO_DEFAULTS,
    ...(origins.length === 0 ? {} : { 'http.origins': JSON.stringify(origins) }),
  };
  const defaults = Object.entries(demoDefaults).filter(([path]) => absent.includes(path));
  const hosts = allowedHosts(given, issuerListen).map(
    ([path, list]) => [path, JSON.stringify([...new Set(list)])] as const,
  );
  const variables = [...defaults, ...hosts].map(([path, value]) => [envName(path), value]);
  return configOrRefuse({ ...sources, env: { ...sources.env, ...Object.fromEntries(variables) } });
}

/** @throws InvalidConfigError when the demo cannot be run with this configuration */
function demoAddresses({ config }: LoadedConfig, listen: string, issuerAt: HostAndPort): readonly DemoAddress[] {
  if (config.grpc.tls !== undefined) {
    throw new InvalidConfigError(
      'grpc.tls: the Envoy of the demo connects to Postern without TLS. Remove this setting, or use "postern serve" with envoy/production.yaml.',
    );
  }
  const edge = listenAddress(listen);
  const grpc = config.grpc.listen;
  return [
    { what: "Envoy's listener", setting: 'POSTERN_DEMO_LISTEN', ...edge },
    { what: "the demo's issuer", setting: 'POSTERN_DEMO_ISSUER_LISTEN', ...issuerAt },
    { what: "Postern's HTTP side", setting: 'POSTERN_HTTP_LISTEN', ...config.http.listen },
    ...(grpc.kind === 'tcp'
      ? [{ what: "Postern's gRPC side", setting: 'POSTERN_GRPC_LISTEN', host: grpc.host, port: grpc.port }]
      : []),
    { what: "Postern's admin side", setting: 'POSTERN_ADMIN_LISTEN', ...config.admin.listen },
  ];
}

function listenAddress(listen: string): HostAndPort {
  try {
    return splitAddress(listen);
  } catch {
    throw new InvalidConfigError(`POSTERN_DEMO_LISTEN: expected host:port, got ${listen}`);
  }
}

/** @throws InvalidConfigError unless it is an address of loopback with a port: only there an issuer may have no TLS */
function issuerAddress(listen: string): HostAndPort {
  const [, host, port] = /^(127(?:\.\d{1,3}){3}|localhost|\[::1\]):(\d{1,5})$/.exec(listen) ?? [];
  if (host === undefined || Number(port) < 1 || Number(port) > 65_535)
    throw new InvalidConfigError(
      `POSTERN_DEMO_ISSUER_LISTEN: expected an address such as ${DEFAULT_ISSUER_LISTEN}, got ${listen}`,
    );
  return { host: host.replace(/[[\]]/g, ''), port: Number(port) };
}

/** Waits until a request passes Envoy and the check. Resolves with false after `SERVING_TIMEOUT_MS`. */
async function serves(edge: string, stop: Promise<void>): Promise<boolean> {
  const deadline = performance.now() + SERVING_TIMEOUT_MS;
  let stopped = false;
  void stop.then(() => {
    stopped = true;
  });
  while (performance.now() < deadline) {
    const answer = await fetch(`http://${edge}/.well-known/jwks.json`, { signal: AbortSignal.timeout(2000) }).catch(
      () => undefined,
    );
    await answer?.body?.cancel();
    if (answer?.status === 200 || stopped) return true;
    await sleep(SERVING_POLL_MS);
  }
  return false;
}

/** Uses another port if the usual one is in use. The banner shows the address, and no configuration names it. */
async function startUpstreamNear(host: string, port: number): Promise<Upstream> {
  return startUpstream(host, port).catch(() => startUpstream(host, 0));
}
