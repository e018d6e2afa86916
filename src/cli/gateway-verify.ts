/**
 * `postern gateway verify`: sends one request without a credential to each match of each route, and lists those that
 * Postern does not answer with 401. A request for one of Postern's own paths must reach its API.
 */

import { readFile } from 'node:fs/promises';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP } from 'node:net';
import { hostAndPort } from '../config/listening.ts';
import { duration, type TcpAddress, tcpAddress } from '../config/parsers.ts';
import { readFailure } from '../config/yaml.ts';
import { matchRoute, type RouteTable } from '../decision/routes.ts';
import { systemCode } from '../domain/errors.ts';
import { routeTable } from '../server/credential-cache.ts';
import { printable } from './apply-plan.ts';
import { type Arguments, parsedOption, UsageError } from './arguments.ts';
import { loadOrRefuse } from './configuration.ts';
import { readCluster, readDump } from './gateway-cluster.ts';
import {
  type GatewayObject,
  type GatewayObjects,
  idOf,
  type PolicyObject,
  readGatewayObjects,
} from './gateway-objects.ts';
import { type Platform, type Probe, type ProbeRequest, probesOf, streamsOf } from './gateway-requests.ts';

const NOTHING_FOUND = 0;
const FOUND = 1;
const DEFAULT_TIMEOUT = '5s';
const PARALLEL = 8;
/** Postern's challenge, by which its 401 differs from another filter's and from the platform's. */
const CHALLENGE = 'realm="postern"';
/** The form of the id that Postern's API gives each request, in `x-request-id` of its answers. */
const REQUEST_ID = /^req_[0-9a-z]{26}$/;

export async function gatewayVerifyCommand(args: Arguments): Promise<number> {
  const sending = await sendingOf(args);
  const { config } = await loadOrRefuse(args);
  const exempt = exemptionsOf(args.value('public'));
  const objects = readGatewayObjects(await itemsOf(args));
  const gateways = selected(objects, args.words);
  const platform = platformOf(routeTable(config), exempt.paths);
  const probes = probesOf(objects, gateways, platform);
  const findings = [
    ...gateways.flatMap((gateway) =>
      streamsOf(objects, gateway)
        .filter((route) => !exempt.routes.has(idOf(route)))
        .map((route) => `${idOf(gateway)}  ${route.kind} ${idOf(route)}: no check applies to its connections`),
    ),
    ...policyFindings(objects, gateways, probes),
  ];
  const isExempt = ({ route, request }: Probe): boolean =>
    exempt.routes.has(idOf(route)) || isNamed(exempt.paths, request?.path ?? '');
  /** Also of a match whose requests another one takes, such as a second route for the same path. */
  const isOwn = ({ request }: Probe): boolean =>
    request !== undefined && platform.isPublic(request.method, request.path);
  const tried = probes.filter((probe) => !isExempt(probe));
  const guarded = tried.filter((probe) => !isOwn(probe));
  if (guarded.length === 0 && findings.length === 0)
    throw new Error('There is no request to send: no HTTPRoute or GRPCRoute of a Gateway needs a credential.');
  const answers = await inParallel(tried, (probe) => answerOf(probe, isOwn(probe), sending));
  const wrong = answers.flatMap(({ probe, says }) => (says === undefined ? [] : [{ probe, says }]));
  for (const line of [...findings, ...wrong.map(({ probe, says }) => `${placeOf(probe)}: ${says}`)])
    process.stdout.write(`${printable(line)}\n`);
  const own = tried.length - guarded.length;
  const wrongOwn = wrong.filter(({ probe }) => isOwn(probe)).length;
  const parts = [
    `${guarded.length - wrong.length + wrongOwn} of ${guarded.length} requests were answered 401 by Postern`,
    ...(own === 0 ? [] : [`${own - wrongOwn} of ${own} for its own paths were answered by its API`]),
    `${probes.length - tried.length} matches are public`,
    ...(findings.length === 0 ? [] : [`${findings.length} policies or routes have no check`]),
  ];
  process.stdout.write(`${parts.join(', ')}.\n`);
  return findings.length + wrong.length === 0 ? NOTHING_FOUND : FOUND;
}

async function itemsOf(args: Arguments): Promise<readonly unknown[]> {
  const [dump, kubeconfig, context] = [args.value('dump'), args.value('kubeconfig'), args.value('context')];
  if (dump === undefined) return readCluster(kubeconfig, context);
  if ((kubeconfig ?? context) !== undefined) throw new UsageError('--dump excludes --kubeconfig and --context.');
  return readDump(dump);
}

function selected({ gateways }: GatewayObjects, words: readonly string[]): readonly GatewayObject[] {
  const unknown = words.find((word) => !gateways.some((gateway) => idOf(gateway) === word));
  if (unknown !== undefined) throw new UsageError(`There is no Gateway ${unknown}. Name one as NAMESPACE/NAME.`);
  return words.length === 0 ? gateways : gateways.filter((gateway) => words.includes(idOf(gateway)));
}

interface Exemptions {
  /** A path, or the beginning of one with `*`. */
  readonly paths: readonly string[];
  /** `namespace/name` */
  readonly routes: ReadonlySet<string>;
}

function exemptionsOf(text = ''): Exemptions {
  const all = text.split(',').filter((one) => one !== '');
  return {
    paths: all.filter((one) => one.startsWith('/')),
    routes: new Set(all.filter((one) => !one.startsWith('/'))),
  };
}

/** @param publicPaths those that the operator names */
function platformOf(table: RouteTable, publicPaths: readonly string[]): Platform {
  return {
    paths: table.routes.map(({ method, template }) => ({
      method,
      path: template.replace(/\/\*\*$/, '').replaceAll(/\{[^}]*\}/g, 'postern-verify') || '/',
    })),
    isPublic: (method, target) =>
      isNamed(publicPaths, target) ||
      matchRoute(table, { method, path: target.split('?')[0] ?? '', upgrade: undefined }).kind === 'public',
  };
}

/** @param publicPaths those that the operator names */
function isNamed(publicPaths: readonly string[], target: string): boolean {
  const path = target.split('?')[0] ?? '';
  return publicPaths.some((one) => (one.endsWith('*') ? path.startsWith(one.slice(0, -1)) : path === one));
}

/** Policies by which requests lose the check: the most specific one applies, and not the Gateway's. */
function policyFindings(
  { policies }: GatewayObjects,
  gateways: readonly GatewayObject[],
  probes: readonly Probe[],
): readonly string[] {
  const own = new Set([
    ...gateways.map((gateway) => `Gateway ${idOf(gateway)}`),
    ...probes.map(({ route }) => `${route.kind} ${idOf(route)}`),
  ]);
  return policies.flatMap((policy) => {
    const { extAuth, mergeType, targetRef, targetRefs = [], targetSelectors = [] } = policy.spec;
    const named = targetRef === undefined ? targetRefs : [targetRef, ...targetRefs];
    const targets = [
      ...named
        .filter(({ kind, name }) => kind === 'ListenerSet' || own.has(`${kind} ${namespaceOf(policy)}/${name}`))
        .map(({ kind, name, sectionName }) => `${kind} ${name}${sectionName === undefined ? '' : ` (${sectionName})`}`),
      ...targetSelectors.map(({ kind }) => `each ${kind} that it selects`),
    ];
    if (targets.length === 0) return [];
    const where = `SecurityPolicy ${idOf(policy)}, of ${targets.join(', ')}`;
    if (extAuth?.failOpen === true) return [`${where}: failOpen allows requests while Postern does not answer`];
    if (extAuth !== undefined || mergeType !== undefined) return [];
    return [`${where}: it has neither extAuth nor mergeType, so it removes the check`];
  });
}

function namespaceOf({ metadata }: PolicyObject): string {
  return metadata.namespace ?? 'default';
}

interface Sending {
  readonly timeoutMs: number;
  readonly tls: { readonly ca?: string; readonly rejectUnauthorized?: boolean };
  /** By `namespace/name/listener`, `namespace/name` or the empty text. */
  readonly addresses: ReadonlyMap<string, TcpAddress>;
}

async function sendingOf(args: Arguments): Promise<Sending> {
  const addresses = new Map<string, TcpAddress>();
  for (const one of (args.value('address') ?? '').split(',').filter((part) => part !== '')) {
    const at = one.lastIndexOf('=');
    const parsed = tcpAddress.parse({ kind: 'text', text: one.slice(at + 1) });
    if (parsed.kind !== 'value')
      throw new UsageError(
        `--address: expected HOST:PORT, NAMESPACE/GATEWAY=HOST:PORT or NAMESPACE/GATEWAY/LISTENER=HOST:PORT.`,
      );
    addresses.set(at < 0 ? '' : one.slice(0, at), parsed.value);
  }
  const timeoutMs = parsedOption(args, 'timeout', duration, DEFAULT_TIMEOUT);
  const file = args.value('ca');
  const ca =
    file === undefined
      ? undefined
      : await readFile(file, 'utf8').catch((error: unknown) => {
          throw new UsageError(`${file}: ${readFailure(error)}.`);
        });
  return {
    timeoutMs,
    tls: { ...(ca === undefined ? {} : { ca }), ...(args.flag('insecure') ? { rejectUnauthorized: false } : {}) },
    addresses,
  };
}

function addressOf({ gateway, listener }: Probe, { addresses }: Sending): TcpAddress | undefined {
  const id = idOf(gateway);
  const named = addresses.get(`${id}/${listener.name}`) ?? addresses.get(id) ?? addresses.get('');
  const [first] = gateway.status?.addresses ?? [];
  if (named !== undefined || first?.value === undefined) return named;
  return { kind: 'tcp', host: first.value, port: listener.port };
}

interface Answer {
  readonly probe: Probe;
  /** Undefined if Postern answered 401, or its API a request for one of its own paths. */
  readonly says: string | undefined;
}

/** @param isOwn the request is for one of Postern's own paths */
async function answerOf(probe: Probe, isOwn: boolean, sending: Sending): Promise<Answer> {
  const { request } = probe;
  if (request === undefined)
    return {
      probe,
      says: 'no request follows from its regular expression. Try one by hand, and name the route with --public',
    };
  const address = addressOf(probe, sending);
  if (address === undefined)
    return { probe, says: 'the Gateway has no address in its status. Name one with --address' };
  const answer = await send(probe, request, address, sending);
  // The check lets every request for Postern's own paths pass, so they must lead to its API.
  const isPosterns = isOwn
    ? REQUEST_ID.test(answer.requestId)
    : answer.status === 401 && answer.challenge.includes(CHALLENGE);
  const says = isOwn && answer.status !== 0 ? `${answer.status}, but not by Postern's API` : answer.says;
  return {
    probe,
    says: isPosterns ? undefined : `${urlOf(probe, request)} at ${hostAndPort(address)}: ${says}${noteOf(probe)}`,
  };
}

function noteOf({ answeredBy }: Probe): string {
  return answeredBy === 'other' ? ' (another match may have taken the request)' : '';
}

function placeOf({ gateway, listener, route, rule, match }: Probe): string {
  return `${idOf(gateway)} ${listener.name}  ${route.kind} ${idOf(route)} rule ${rule} match ${match}`;
}

/** Names the headers of the match without their values, which may be secrets. */
function urlOf({ host, listener }: Probe, { method, path, headers }: ProbeRequest): string {
  const scheme = listener.protocol === 'HTTPS' ? 'https' : 'http';
  const names = Object.keys(headers);
  const also = names.length === 0 ? '' : ` with ${names.join(', ')}`;
  return `${method} ${scheme}://${host ?? '*'}${path.split('?')[0]}${also}`;
}

interface Received {
  readonly status: number;
  readonly challenge: string;
  readonly requestId: string;
  readonly says: string;
}

/** Sends no credential, follows no redirect, and reads no body. */
function send(
  { host, listener }: Probe,
  { method, path, headers }: ProbeRequest,
  address: TcpAddress,
  { timeoutMs, tls }: Sending,
): Promise<Received> {
  return new Promise((resolve) => {
    const none = (why: string): void =>
      resolve({ status: 0, challenge: '', requestId: '', says: `no answer (${why})` });
    const name = host ?? hostAndPort(address);
    const options = {
      host: address.host,
      port: address.port,
      method,
      path,
      headers: { ...headers, host: name, 'user-agent': 'postern-gateway-verify' },
      agent: false,
      signal: AbortSignal.timeout(timeoutMs),
    };
    const serverName = host ?? address.host;
    try {
      const sent =
        listener.protocol === 'HTTPS'
          ? requestHttps({ ...options, ...tls, ...(isIP(serverName) === 0 ? { servername: serverName } : {}) })
          : requestHttp(options);
      sent.once('response', (response) => {
        const status = response.statusCode ?? 0;
        const challenge = response.headers['www-authenticate'] ?? '';
        const requestId = String(response.headers['x-request-id'] ?? '');
        resolve({ status, challenge, requestId, says: status === 401 ? '401, but not by Postern' : String(status) });
        response.destroy();
      });
      sent.on('error', (error) => none(systemCode(error) ?? error.message));
      sent.end();
    } catch (error) {
      none(systemCode(error) ?? 'the request cannot be written');
    }
  });
}

async function inParallel<T, R>(values: readonly T[], work: (value: T) => Promise<R>): Promise<readonly R[]> {
  const results: R[] = [];
  const waiting = values.entries();
  const runs = Array.from({ length: PARALLEL }, async () => {
    for (const [i, value] of waiting) results[i] = await work(value);
  });
  await Promise.all(runs);
  return results;
}
