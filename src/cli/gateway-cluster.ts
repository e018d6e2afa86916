/** Reads the objects of `postern gateway verify`: of a dump, or of a cluster by a kubeconfig file. */

import { readFile } from 'node:fs/promises';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import type { ConnectionOptions } from 'node:tls';
import { Type } from 'typebox';
import { parse, parseAllDocuments } from 'yaml';
import { readFailure } from '../config/yaml.ts';
import { present } from '../domain/objects.ts';
import { validatorOf } from '../http/validation.ts';
import { readInput } from './apply-file.ts';
import { UsageError } from './arguments.ts';

const MAX_BYTES = 64 * 1_048_576;
const MAX_KUBECONFIG_BYTES = 1_048_576;
const MAX_ALIASES = 100;
const PAGE = 500;
const TIMEOUT_MS = 30_000;

const DUMP_ADVICE =
  'Use a dump: kubectl get gateways,httproutes,grpcroutes,securitypolicies -A -o json | postern gateway verify --dump -';

/** Reads JSON or YAML of `kubectl get … -o`. Returns the elements of each list in it. */
export async function readDump(file: string): Promise<readonly unknown[]> {
  return documentsOf(await readInput(file), file).flatMap((document) => itemsOf(document) ?? [document]);
}

/** The message does not quote the text. */
function documentsOf(text: string, file: string): readonly unknown[] {
  try {
    if (text.trimStart().startsWith('{')) return [JSON.parse(text)];
    return parseAllDocuments(text, { prettyErrors: false })
      .map((document) => {
        if (document.errors.length > 0) throw new Error();
        const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES });
        return value;
      })
      .filter((value) => value !== null);
  } catch {
    throw new UsageError(`${file}: not JSON or YAML of kubectl get -o json.`);
  }
}

const LIST = validatorOf(
  Type.Object({
    items: Type.Array(Type.Unknown()),
    metadata: Type.Optional(Type.Object({ continue: Type.Optional(Type.String()) })),
  }),
);

function itemsOf(value: unknown): readonly unknown[] | undefined {
  const checked = LIST(value, false);
  return checked.kind === 'valid' ? checked.value.items : undefined;
}

const TEXT = Type.Optional(Type.String());
const CLUSTER = Type.Object({
  server: Type.String(),
  'certificate-authority': TEXT,
  'certificate-authority-data': TEXT,
  'insecure-skip-tls-verify': Type.Optional(Type.Boolean()),
  'tls-server-name': TEXT,
  'proxy-url': TEXT,
});
const USER = Type.Object({
  token: TEXT,
  tokenFile: TEXT,
  'client-certificate': TEXT,
  'client-certificate-data': TEXT,
  'client-key': TEXT,
  'client-key-data': TEXT,
  exec: Type.Optional(Type.Unknown()),
  'auth-provider': Type.Optional(Type.Unknown()),
  username: TEXT,
});
const readKubeconfig = validatorOf(
  Type.Object({
    'current-context': TEXT,
    contexts: Type.Optional(
      Type.Array(Type.Object({ name: Type.String(), context: Type.Object({ cluster: Type.String(), user: TEXT }) })),
    ),
    clusters: Type.Optional(Type.Array(Type.Object({ name: Type.String(), cluster: CLUSTER }))),
    users: Type.Optional(Type.Array(Type.Object({ name: Type.String(), user: USER }))),
  }),
);

interface Access {
  readonly server: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: Readonly<Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername' | 'rejectUnauthorized'>>;
}

/** @param file default: KUBECONFIG, then `~/.kube/config` */
async function accessOf(file: string | undefined, context: string | undefined): Promise<Access> {
  const [path = ''] = (file ?? (process.env['KUBECONFIG'] || join(homedir(), '.kube/config'))).split(delimiter);
  const refuse = (why: string): never => {
    throw new UsageError(`${path}: ${why}`);
  };
  const text = await readFile(path, 'utf8').catch((error: unknown) => refuse(`${readFailure(error)}. ${DUMP_ADVICE}`));
  if (text.length > MAX_KUBECONFIG_BYTES) return refuse('too large to be a kubeconfig file.');
  const config = parsedKubeconfig(text) ?? refuse('not a kubeconfig file.');
  const name = context ?? config['current-context'] ?? '';
  const own =
    config.contexts?.find((one) => one.name === name)?.context ??
    refuse('it does not have this context. Name one with --context.');
  const cluster =
    config.clusters?.find((one) => one.name === own.cluster)?.cluster ??
    refuse("it does not have the context's cluster.");
  const user = config.users?.find((one) => one.name === own.user)?.user ?? {};
  if ((user.exec ?? user['auth-provider'] ?? undefined) !== undefined || user.username !== undefined)
    return refuse(`its user needs a program or a password, which this command does not support. ${DUMP_ADVICE}`);
  if (cluster['proxy-url'] !== undefined)
    return refuse(`it needs a proxy, which this command does not support. ${DUMP_ADVICE}`);
  // Data takes precedence over the file, whose path is relative to the kubeconfig file.
  const pem = async (data: string | undefined, from: string | undefined): Promise<string | undefined> => {
    if (data !== undefined && data !== '') return Buffer.from(data, 'base64').toString();
    if (from === undefined || from === '') return undefined;
    return readFile(resolve(dirname(path), from), 'utf8').catch((error: unknown) =>
      refuse(`${from}: ${readFailure(error)}.`),
    );
  };
  const ca = await pem(cluster['certificate-authority-data'], cluster['certificate-authority']);
  const cert = await pem(user['client-certificate-data'], user['client-certificate']);
  const key = await pem(user['client-key-data'], user['client-key']);
  const token = user.token || (await pem(undefined, user.tokenFile))?.trim();
  const { 'tls-server-name': servername, 'insecure-skip-tls-verify': isUnverified = false } = cluster;
  return {
    server: cluster.server.replace(/\/$/, ''),
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    tls: present({ ca, cert, key, servername, rejectUnauthorized: isUnverified ? false : undefined }),
  };
}

function parsedKubeconfig(text: string) {
  try {
    const checked = readKubeconfig(parse(text, { prettyErrors: false, maxAliasCount: MAX_ALIASES }), false);
    return checked.kind === 'valid' ? checked.value : undefined;
  } catch {
    return undefined;
  }
}

interface Resource {
  readonly group: string;
  /** The versions, in the order in which they are tried. The first one that the cluster serves is used. */
  readonly versions: readonly string[];
  readonly plural: string;
  readonly kind: string;
}

const GATEWAY_API = { group: 'gateway.networking.k8s.io', versions: ['v1', 'v1beta1', 'v1alpha2'] };
const RESOURCES: readonly Resource[] = [
  { ...GATEWAY_API, plural: 'gateways', kind: 'Gateway' },
  { ...GATEWAY_API, plural: 'listenersets', kind: 'ListenerSet' },
  { ...GATEWAY_API, plural: 'httproutes', kind: 'HTTPRoute' },
  { ...GATEWAY_API, plural: 'grpcroutes', kind: 'GRPCRoute' },
  { ...GATEWAY_API, plural: 'tcproutes', kind: 'TCPRoute' },
  { ...GATEWAY_API, plural: 'tlsroutes', kind: 'TLSRoute' },
  { ...GATEWAY_API, plural: 'udproutes', kind: 'UDPRoute' },
  { group: 'gateway.envoyproxy.io', versions: ['v1alpha1'], plural: 'securitypolicies', kind: 'SecurityPolicy' },
];

/** Lists the objects of all namespaces. A kind that the cluster does not have is left out, except Gateways. */
export async function readCluster(file: string | undefined, context: string | undefined): Promise<readonly unknown[]> {
  const access = await accessOf(file, context);
  const budget = { bytes: MAX_BYTES };
  const all: unknown[] = [];
  for (const resource of RESOURCES) {
    const items = await listAll(access, resource, budget);
    if (items === undefined && resource.kind === 'Gateway') throw new Error('The cluster does not have Gateway API.');
    // The elements of a list may lack their kind.
    for (const item of items ?? [])
      all.push({ ...Object(item), apiVersion: `${resource.group}/v1`, kind: resource.kind });
  }
  return all;
}

/** Returns undefined if the cluster does not have the resource. */
async function listAll(
  access: Access,
  { group, versions, plural }: Resource,
  budget: { bytes: number },
): Promise<readonly unknown[] | undefined> {
  for (const version of versions) {
    const all: unknown[] = [];
    for (let next: string | undefined = ''; next !== undefined; ) {
      const cursor: string = next === '' ? '' : `&continue=${encodeURIComponent(next)}`;
      const { status, text } = await get(access, `/apis/${group}/${version}/${plural}?limit=${PAGE}${cursor}`, budget);
      if (status === 404) break;
      if (status !== 200)
        throw new Error(
          `The API server answers ${status} to the list of ${plural}. The user must be able to list them.`,
        );
      const page = LIST(JSON.parse(text), false);
      if (page.kind === 'invalid') throw new Error(`The API server's list of ${plural} is not one.`);
      all.push(...page.value.items);
      next = page.value.metadata?.continue || undefined;
      if (next === undefined) return all;
    }
  }
  return undefined;
}

function get(
  { server, headers, tls }: Access,
  path: string,
  budget: { bytes: number },
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolvePage, reject) => {
    const fail = (why: string): void => reject(new Error(`The API server ${server} cannot be read: ${why}.`));
    const send = server.startsWith('https:') ? requestHttps : requestHttp;
    const options = {
      ...tls,
      agent: false,
      headers: { ...headers, accept: 'application/json' },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    };
    const sent = send(`${server}${path}`, options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => {
        budget.bytes -= chunk.length;
        if (budget.bytes < 0) sent.destroy(new Error(`its objects have more than ${MAX_BYTES / 1_048_576} MiB`));
        else chunks.push(chunk);
      });
      response.once('end', () =>
        resolvePage({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }),
      );
      response.once('error', (error) => fail(error.message));
    });
    sent.once('error', (error) => fail(error.message));
    sent.end();
  });
}
