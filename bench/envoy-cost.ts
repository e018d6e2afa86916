/**
 * The processor time of one request in Envoy and in the gate, with the parts of `envoy/demo.yaml` added in turn, beside
 * an Envoy without any of them and one whose check server does nothing.
 */

import { readFile } from 'node:fs/promises';
import { Agent, createServer, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type EnvoyAddress, listAt, type Mapping, mapping, placeAddresses } from '../src/cli/envoy-config.ts';
import { countingNatively } from '../src/cli/envoy-native-usage.ts';
import { DEMO_CONFIG, type Edge, startConfig } from '../test/support/envoy.ts';
import { chatBody } from './frames.ts';
import { startFloor } from './gate-subjects.ts';
import { keyText, populate } from './population.ts';
import { openWorld, type ServerUnderTest } from './server-under-test.ts';
import { median, preciseProcessorUs, printTable, processTree, type Row, scratch, writeResult } from './stack.ts';

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 9);
const CALLS = Number(process.env['BENCH_CALLS'] ?? 600);
/** Enough that the gate's code is compiled. */
const WARM = 2000;
const AT_ONCE = 8;
const KEYS = 100;
/** Longer than Envoy and the gate keep the end of a request before they send it. */
const SETTLED_MS = 700;
const MODEL = 'llama-3-8b';
const BIG = 65_536;

interface Kind {
  readonly name: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body: string | undefined;
}

const small = chatBody(MODEL);
const KINDS: readonly Kind[] = [
  { name: 'chat 1 KB', method: 'POST', path: '/v1/chat/completions', body: small },
  { name: 'GET', method: 'GET', path: '/v1/models', body: undefined },
  {
    name: 'chat 64 KB',
    method: 'POST',
    path: '/v1/chat/completions',
    body: small.replace('You are', `${'Read this. '.repeat(6000).slice(0, BIG - small.length)}You are`),
  },
];

const ANSWER = JSON.stringify({
  id: 'chatcmpl-0123456789',
  object: 'chat.completion',
  created: 1_790_000_000,
  model: MODEL,
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'The fox rests by the river. '.repeat(12) },
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 180, completion_tokens: 84, total_tokens: 264 },
});

/** A part of the demo's configuration, and how to take it out. */
interface Part {
  readonly name: string;
  readonly without: (config: Mapping) => void;
}

function connectionManager(config: Mapping): Mapping {
  const [listener = {}] = listAt(mapping(config['static_resources']), 'listeners');
  const [chain = {}] = listAt(listener, 'filter_chains');
  const [filter = {}] = listAt(chain, 'filters');
  return mapping(filter['typed_config']);
}

function withoutFilters(config: Mapping, ...names: readonly string[]): void {
  const manager = connectionManager(config);
  manager['http_filters'] = listAt(manager, 'http_filters').filter(
    ({ name }) => !names.some((each) => name === `envoy.filters.http.${each}`),
  );
}

/** In the order in which the table adds them. Each step has all parts up to it. */
const PARTS: readonly Part[] = [
  {
    name: "the demo's listener and routes",
    without: (config) => {
      const manager = connectionManager(config);
      const routes = mapping(manager['route_config']);
      const [host = {}] = listAt(routes, 'virtual_hosts');
      host['routes'] = [{ match: { prefix: '/' }, route: { cluster: 'upstream' } }];
      delete host['typed_per_filter_config'];
      for (const name of Object.keys(manager))
        if (!['@type', 'stat_prefix', 'route_config', 'http_filters', 'access_log'].includes(name))
          delete manager[name];
    },
  },
  {
    name: '+ early header mutation',
    without: (config) => {
      delete connectionManager(config)['early_header_mutation_extensions'];
    },
  },
  { name: '+ CORS and header filters', without: (config) => withoutFilters(config, 'cors', 'header_mutation') },
  { name: "+ Postern's check", without: (config) => withoutFilters(config, 'ext_authz') },
  {
    name: '+ access log to the meter',
    without: (config) => {
      delete connectionManager(config)['access_log'];
    },
  },
  { name: '+ usage reader (Lua): the demo', without: (config) => withoutFilters(config, 'lua') },
];

interface Subject {
  readonly name: string;
  readonly edge: Edge;
  readonly gate: readonly number[];
  /** Microseconds for each request, by the kind of request and round. */
  readonly envoyUs: Map<Kind, number[]>;
  readonly gateUs: Map<Kind, number[]>;
}

export async function envoyCost(): Promise<void> {
  const directory = scratch();
  await using world = await openWorld(join(directory, 'world'), async (client) => {
    await populate(client, { tenants: 10, keys: KEYS, usable: KEYS });
    await client.query(`update tenants set quotas = quotas || '{"monthly_tokens":1000000000000}'`);
    await client.query(`update api_keys set user_id = null, scopes = '{chat:*,models:*}'`);
  });
  await using stack = new AsyncDisposableStack();
  const upstream = await startUpstream(stack);
  const start = async (settings: NodeJS.ProcessEnv = {}): Promise<ServerUnderTest> => {
    const server = await world.start({ settings });
    stack.defer(() => server.stop());
    return server;
  };
  const socket = `unix:${join(directory, 'gate.sock')}`;
  const server = await start();
  const local = await start({ POSTERN_GRPC_LISTEN: socket });
  const floor = await startFloor('built-in', 2, directory);
  stack.defer(() => floor.stop());

  const text = await readFile(DEMO_CONFIG, 'utf8');
  const subjects: Subject[] = [];
  const add = async (
    name: string,
    grpc: EnvoyAddress,
    pid: number | undefined,
    without: readonly Part[],
    change?: (config: Mapping) => void,
    file = text,
  ): Promise<void> => {
    const http = server.http;
    const places = { edge: '127.0.0.1:0', 'postern-grpc': grpc, 'postern-http': http, upstream };
    const config = placeAddresses(file, { admin: '127.0.0.1:0', places });
    for (const part of without) part.without(config);
    change?.(config);
    const edge = await startConfig(config);
    stack.defer(() => edge.stop());
    const gate = pid === undefined ? [] : processTree(pid);
    subjects.push({ name, edge, gate, envoyUs: new Map(), gateUs: new Map() });
  };
  await add('Envoy without any of it', server.grpc, undefined, PARTS);
  await add('an empty check', floor.address, floor.pid, PARTS, emptyCheck);
  for (const [i, { name }] of PARTS.entries())
    await add(name, server.grpc, i < 3 ? undefined : server.pid, PARTS.slice(i + 1));
  await add('the demo, gate on a Unix socket', socket, local.pid, []);
  await add('the demo, usage counted by Envoy', server.grpc, server.pid, [], undefined, countingNatively(text));

  const agents = new Map(subjects.map((each) => [each, new Agent({ keepAlive: true, maxSockets: AT_ONCE })]));
  stack.defer(() => {
    for (const agent of agents.values()) agent.destroy();
  });
  for (const round of Array.from({ length: ROUNDS + 1 }, (_, i) => i - 1))
    for (const subject of subjects)
      for (const kind of KINDS) await measure(subject, kind, agents.get(subject), round < 0);
  finish(subjects);
}

/** ext_authz with little more than its server. */
function emptyCheck(config: Mapping): void {
  const manager = connectionManager(config);
  for (const cluster of listAt(mapping(config['static_resources']), 'clusters')) delete cluster['health_checks'];
  manager['http_filters'] = [
    {
      name: 'envoy.filters.http.ext_authz',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz',
        transport_api_version: 'V3',
        grpc_service: { envoy_grpc: { cluster_name: 'postern-grpc' }, timeout: '3s' },
        with_request_body: { max_request_bytes: 1_048_576, allow_partial_message: true, pack_as_bytes: true },
      },
    },
    ...listAt(manager, 'http_filters'),
  ];
}

async function measure(subject: Subject, kind: Kind, agent: Agent | undefined, isWarmUp: boolean): Promise<void> {
  const { edge, gate, envoyUs, gateUs } = subject;
  const used = (): readonly [number, number] => [
    preciseProcessorUs(edge.pid),
    gate.reduce((sum, pid) => sum + preciseProcessorUs(pid), 0),
  ];
  const before = used();
  let left = isWarmUp ? WARM : CALLS;
  const one = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const status = await send(edge.port, kind, left % KEYS, agent);
      if (status !== 200) throw new Error(`${subject.name}: Envoy answered ${status} to ${kind.name}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  if (gate.length > 0 && kind.method === 'POST') await sleep(SETTLED_MS);
  if (isWarmUp) return;
  const after = used();
  envoyUs.set(kind, [...(envoyUs.get(kind) ?? []), (after[0] - before[0]) / CALLS]);
  gateUs.set(kind, [...(gateUs.get(kind) ?? []), (after[1] - before[1]) / CALLS]);
}

function send(port: number, { method, path, body }: Kind, key: number, agent: Agent | undefined): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${keyText(key)}`,
      accept: 'application/json',
      'user-agent': 'OpenAI/Python 2.8.1',
      'x-stainless-lang': 'python',
      'x-stainless-runtime': 'CPython',
      ...(body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
    };
    const outgoing = request(
      { ...(agent && { agent }), host: '127.0.0.1', port, method, path, headers },
      (incoming) => {
        incoming.resume().once('end', () => resolve(incoming.statusCode ?? 0));
      },
    );
    outgoing.once('error', reject).end(body);
  });
}

async function startUpstream(stack: AsyncDisposableStack): Promise<string> {
  const server = createServer((incoming, response) => {
    incoming.resume().once('end', () => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': ANSWER.length }).end(ANSWER);
    });
  });
  server.keepAliveTimeout = 600_000;
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  stack.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return `127.0.0.1:${address.port}`;
}

function finish(subjects: readonly Subject[]): void {
  const of = (subject: Subject, kind: Kind, figure: 'envoyUs' | 'gateUs'): number =>
    median(subject[figure].get(kind) ?? []);
  const [bare] = subjects;
  const rows = subjects.map((subject): Row => {
    const cells = KINDS.flatMap((kind) => {
      const [envoy, gate] = [of(subject, kind, 'envoyUs'), of(subject, kind, 'gateUs')];
      const added = bare === undefined ? 0 : envoy + gate - of(bare, kind, 'envoyUs');
      return [
        [`${kind.name}: Envoy`, envoy.toFixed(0)],
        [`${kind.name}: gate`, gate.toFixed(0)],
        [`${kind.name}: added`, added.toFixed(0)],
      ];
    });
    return { 'processor us per request': subject.name, ...Object.fromEntries(cells) };
  });
  printTable(
    `The price of a request in Envoy: medians of ${ROUNDS} rounds of ${CALLS} requests, ${AT_ONCE} at once`,
    rows,
  );
  writeResult('envoy-cost', { rows, rounds: ROUNDS, calls: CALLS });
}
