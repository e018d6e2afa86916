/** One Kubernetes API server with an etcd of its own on loopback: enough of a cluster to issue ServiceAccount tokens. */

import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeAuthority } from '../../../test/support/certificates.ts';
import { freePort } from '../../../test/support/ports.ts';

const READY_LIMIT_MS = 180_000;
const POLL_MS = 250;
const KEPT_OUTPUT_CHARS = 2_048;

type Caller = 'administrator' | 'anonymous' | { readonly user: string };

export interface ApiServer extends AsyncDisposable {
  /** `https://localhost:PORT`: also the issuer of its tokens. */
  readonly url: string;
  /** `localhost:PORT` */
  readonly host: string;
  /** The authority of its certificate, PEM. */
  readonly ca: string;
  /**
   * Sends a request as cluster administrator, as anonymous, or as a user. Throws unless the status is one of success.
   */
  call(method: string, path: string, body?: object, as?: Caller): Promise<unknown>;
}

/** @param folder has `kube-apiserver` and `etcd` */
export async function startApiServer(folder: string): Promise<ApiServer> {
  await using starting = new AsyncDisposableStack();
  const data = await mkdtemp(join(tmpdir(), 'postern-kubernetes-'));
  starting.defer(() => rm(data, { recursive: true, force: true }));
  const [client, peer, port] = [await freePort(), await freePort(), await freePort()];
  const etcd = `http://127.0.0.1:${client}`;
  start(starting, join(folder, 'etcd'), [
    `--data-dir=${join(data, 'etcd')}`,
    `--listen-client-urls=${etcd}`,
    `--advertise-client-urls=${etcd}`,
    `--listen-peer-urls=http://127.0.0.1:${peer}`,
    '--unsafe-no-fsync',
  ]);
  const authority = makeAuthority();
  const { certPem, keyPem } = authority.issue('localhost');
  const token = randomBytes(16).toString('hex');
  const signing = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const file = async (name: string, text: string): Promise<string> => {
    await writeFile(join(data, name), text, { mode: 0o600 });
    return join(data, name);
  };
  const url = `https://localhost:${port}`;
  const output = start(starting, join(folder, 'kube-apiserver'), [
    `--etcd-servers=${etcd}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    // The Service `kubernetes` cannot have an endpoint on loopback, and nothing here needs it.
    '--endpoint-reconciler-type=none',
    `--secure-port=${port}`,
    `--tls-cert-file=${await file('tls.crt', certPem)}`,
    `--tls-private-key-file=${await file('tls.key', keyPem)}`,
    `--token-auth-file=${await file('tokens.csv', `${token},administrator,1,system:masters\n`)}`,
    '--authorization-mode=RBAC',
    '--service-cluster-ip-range=10.0.0.0/24',
    `--service-account-issuer=${url}`,
    `--service-account-jwks-uri=${url}/openid/v1/jwks`,
    `--service-account-signing-key-file=${await file('sa.key', signing.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())}`,
    `--service-account-key-file=${await file('sa.pub', signing.publicKey.export({ type: 'spki', format: 'pem' }).toString())}`,
  ]);
  const call: ApiServer['call'] = (method, path, body, as = 'administrator') =>
    send(`${url}${path}`, authority.certPem, method, body, {
      ...(as === 'anonymous' ? {} : { authorization: `Bearer ${token}` }),
      ...(typeof as === 'object' ? { 'impersonate-user': as.user } : {}),
    });
  await untilReady(() => call('GET', '/readyz'), output);
  const running = starting.move();
  return {
    url,
    host: `localhost:${port}`,
    ca: authority.certPem,
    call,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** Whatever ends this process, no server outlives it. */
const children = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** Starts a process that the stack kills. @returns the end of its output, and whether it has ended */
function start(
  stack: AsyncDisposableStack,
  program: string,
  args: readonly string[],
): () => { readonly text: string; readonly ended: boolean } {
  const child = spawn(program, [...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  children.add(child);
  let text = '';
  let ended = false;
  const keep = (chunk: Buffer): void => {
    text = (text + chunk.toString()).slice(-KEPT_OUTPUT_CHARS);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const exited = new Promise<void>((resolve) => {
    child.once('error', (error) => keep(Buffer.from(error.message)));
    child.once('close', () => {
      ended = true;
      children.delete(child);
      resolve();
    });
  });
  stack.defer(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  return () => ({ text, ended });
}

async function untilReady(
  isReady: () => Promise<unknown>,
  output: () => { readonly text: string; readonly ended: boolean },
): Promise<void> {
  for (const deadline = performance.now() + READY_LIMIT_MS; performance.now() < deadline; await sleep(POLL_MS)) {
    const { text, ended } = output();
    if (ended) throw new Error(`kube-apiserver ended: ${text}`);
    const isUp = await isReady().then(
      () => true,
      () => false,
    );
    if (isUp) return;
  }
  throw new Error(`kube-apiserver was not ready within ${READY_LIMIT_MS} ms: ${output().text}`);
}

async function send(
  url: string,
  ca: string,
  method: string,
  body: object | undefined,
  caller: Readonly<Record<string, string>>,
): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
  const headers = {
    accept: 'application/json, application/jwk-set+json',
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...caller,
  };
  const sent = request(url, { method, headers, ca, agent: false }, (response) => {
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk));
    response.on('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
    response.on('error', reject);
  });
  sent.on('error', reject);
  sent.end(body === undefined ? undefined : JSON.stringify(body));
  const { status, text } = await promise;
  if (status < 200 || status >= 300) throw new Error(`${method} ${url}: ${status} ${text.slice(0, 1000)}`);
  return text.startsWith('{') ? JSON.parse(text) : text;
}
