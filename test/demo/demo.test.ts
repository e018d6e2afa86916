/**
 * `postern demo` as a newcomer meets it: the whole program, its own PostgreSQL and Envoy, and the lines that it prints.
 */

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { becomes } from '../server/support/eventually.ts';
import { postmasterOf } from '../server/support/postgres.ts';
import { childrenOf, isRunning } from '../server/support/processes.ts';
import { type Demo, demoEnvironment, MAIN, startDemo as startDemoWith } from '../support/demo.ts';
import { send } from '../support/http.ts';

const RUN = fileURLToPath(new URL('../../scripts/run.mjs', import.meta.url));
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-demo-'));
  // As root, the embedded PostgreSQL runs as another user, which needs access to the data.
  await chmod(folder, 0o711);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

const environment = (more: NodeJS.ProcessEnv = {}): Promise<NodeJS.ProcessEnv> => demoEnvironment(folder, more);

async function startDemo(words?: readonly string[]): Promise<Demo> {
  return startDemoWith(await environment(), words);
}

/** The line as pasted into a shell: status line and body. */
function paste(line: string): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile('/bin/sh', ['-c', line], (error, stdout) => (error === null ? resolve(stdout) : reject(error)));
  });
}

describe('the demo', () => {
  let first: Demo;
  let env: NodeJS.ProcessEnv;

  it('prints five lines that give 200, 200 with a verified token, 200 with a token of its issuer, 403 by role and 403 by policy when pasted', async () => {
    env = await environment();
    first = await startDemoWith(env);
    expect(first.curls).toHaveLength(5);
    const [allowed, withToken, byIssuer, byRole, byPolicy] = await Promise.all(first.curls.map(paste));
    expect(allowed).toMatch(/^HTTP\/1\.1 200 [\s\S]*"object":"chat\.completion"/);
    expect(allowed).toMatch(/"x_echo":\{[^}]*"x-postern-tenant":"acme"/);
    expect(allowed).not.toContain(first.value('API key'));
    expect(withToken).toMatch(/^HTTP\/1\.1 200 [\s\S]*"x-postern-token":"eyJ/);
    expect(byIssuer).toMatch(/^HTTP\/1\.1 200 [\s\S]*"x-postern-tenant":"acme"/);
    expect(byRole).toMatch(/^HTTP\/1\.1 403 [\s\S]*"code":"insufficient_permission"/);
    expect(byPolicy).toMatch(/^HTTP\/1\.1 403 [\s\S]*"code":"denied_by_policy"[\s\S]*"policy":"no-secret-models"/);
  });

  it('prints a loop that meets the limit of a small tenant, and books what it spent', async () => {
    const [loop] = [...first.text.matchAll(/^ +(for .+)$/gm)].map((match) => match[1] ?? '');
    const codes = (await paste(loop ?? '')).trim().split(' ');
    expect(codes).toHaveLength(12);
    expect(new Set(codes)).toEqual(new Set(['200', '429']));
    // Two minutes at most have passed.
    expect(codes.filter((code) => code === '200').length).toBeLessThanOrEqual(10);
    const metrics = new URL(first.value('Metrics') ?? '');
    await expect
      .poll(async () => (await send(metrics.origin, { path: metrics.pathname })).body, { timeout: 10_000 })
      .toMatch(/^postern_settlements_total\{outcome="booked"\} [1-9]/m);
  });

  it('logs the administrator in through Envoy with the password that it prints', async () => {
    const answer = await send(first.value('Envoy') ?? '', {
      method: 'POST',
      path: '/v1/auth/login',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email: first.value('Administrator'), password: first.value('Password') }),
    });
    expect(answer.status, answer.body).toBe(200);
  });

  it('prints the address at which its console opens, on a tenant that is there', async () => {
    const address = new URL(first.value('Console') ?? '');
    expect(address.origin).toBe(first.value('Envoy'));
    const page = await send(address.origin, { path: address.pathname });
    expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(address.searchParams.get('tenant')).toBe('acme');
  });

  it("keeps a page's session in a cookie that a browser takes without TLS, for pages of its own address", async () => {
    const envoy = first.value('Envoy') ?? '';
    const post = (path: string, headers: Readonly<Record<string, string>>, body: object) =>
      send(envoy, {
        method: 'POST',
        path,
        headers: { host: new URL(envoy).host, 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      });
    const { origin } = new URL(envoy);
    const account = { email: first.value('Administrator'), password: first.value('Password'), session: 'cookie' };
    const begun = await post('/v1/auth/login', { origin }, account);
    const [cookie = ''] = (begun.headers['set-cookie'] ?? []).map((line) => line.split(';')[0] ?? '');
    expect([begun.status, cookie]).toEqual([200, expect.stringMatching(/^postern_refresh=prt_/)]);
    // Envoy writes the scheme itself, and ignores a client's claim.
    const claimed = { origin: origin.replace('http:', 'https:'), 'x-forwarded-proto': 'https', cookie };
    expect((await post('/v1/auth/refresh', claimed, {})).status).toBe(401);
    expect((await post('/v1/auth/refresh', { origin, cookie }, {})).status).toBe(200);
  });

  it("answers a rejected body with Postern's problem document, and checks every byte of it", async () => {
    const chat = (body: Buffer) =>
      send(first.value('Envoy') ?? '', {
        method: 'POST',
        path: '/v1/chat/completions',
        headers: { authorization: `Bearer ${first.value('API key')}`, 'content-type': 'application/json' },
        body,
      });
    const large = await chat(Buffer.from(JSON.stringify({ model: 'llama-3', padding: 'x'.repeat(1_200_000) })));
    expect([large.status, JSON.parse(large.body).code]).toEqual([413, 'body_too_large']);
    expect(large.headers['content-type']).toBe('application/problem+json');
    const bytes = await chat(Buffer.from('7b226d6f64656c223a22ff227d', 'hex'));
    expect([bytes.status, JSON.parse(bytes.body).code]).toEqual([400, 'malformed_body']);
  });

  it('shows in the ledger what the upstream reported', async () => {
    const { origin, pathname } = new URL(first.value('Upstream ledger') ?? '');
    const { total, data } = JSON.parse((await send(origin, { path: pathname })).body);
    expect(total.requests).toBe(data.length);
    expect(data[0]).toMatchObject({ tenant: 'acme', model: 'llama-3' });
    expect(data[1]).toMatchObject({ tenant: 'acme', model: 'llama-3' });
    expect(data[2]).toMatchObject({ tenant: 'trial', model: 'llama-3' });
  });

  it('shows the event of a locked login, which its receiver has verified', async () => {
    const url = first.value('Events') ?? '';
    const received = async (): Promise<boolean> => {
      const { body } = await send(new URL(url).origin, { method: 'GET', path: '/events' });
      return JSON.parse(body).some((event: { readonly type: string }) => event.type === 'login.locked');
    };
    await becomes('the event has arrived', true, received);
  });

  it('stops at Ctrl-C, and at its second start has the same data, a new key, another token and no password to show', async () => {
    expect(await first.stop()).toBe(0);
    const second = await startDemoWith(env);
    try {
      expect(second.value('Password')).toBeUndefined();
      expect(second.value('API key')).not.toBe(first.value('API key'));
      const [allowed, , byIssuer] = second.curls;
      expect(await paste(allowed ?? '')).toMatch(/^HTTP\/1\.1 200 /);
      expect(await paste(byIssuer ?? '')).toMatch(/^HTTP\/1\.1 200 /);
      // The issuer has the same address and another key.
      expect(await paste(first.curls[2] ?? '')).toMatch(/^HTTP\/1\.1 401 [\s\S]*"code":"invalid_credential"/);
      const old = (allowed ?? '').replace(second.value('API key') ?? '', first.value('API key') ?? '');
      expect(await paste(old)).toMatch(/^HTTP\/1\.1 401 [\s\S]*"code":"invalid_credential"/);
    } finally {
      expect(await second.stop()).toBe(0);
    }
  });
});

/** Ids of all processes below this one. */
async function descendantsOf(pid: number): Promise<readonly number[]> {
  const children = await childrenOf(pid);
  return [...children, ...(await Promise.all(children.map(descendantsOf))).flat()];
}

describe('npm start', () => {
  it.each([
    { killed: 'the script', words: [process.execPath, RUN, 'demo'] },
    // As npm runs it: the script is the child of a process that passes no signal on.
    { killed: 'npm', words: ['/bin/sh', '-c', `"$0" "$1" demo; exit`, process.execPath, RUN] },
  ])('leaves no server, no Envoy and no PostgreSQL behind when $killed is killed', async ({ words }) => {
    const { child } = await startDemo(words);
    const started = await descendantsOf(child.pid ?? 0);
    const postmaster = await postmasterOf(join(folder, 'data'));
    expect(postmaster).toBeDefined();
    child.kill('SIGKILL');
    for (const pid of [...started, postmaster ?? 0])
      await becomes(`process ${pid} has ended`, false, () => isRunning(pid));
  });
});

/** Runs it to its end, which comes by itself. */
async function failedStart(more: NodeJS.ProcessEnv): Promise<{ code: number | null; errors: string; output: string }> {
  const env = await environment(more);
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [MAIN, 'demo'], { env }, (_error, output, errors) =>
      resolve({ code: child.exitCode, errors, output }),
    );
  });
}

describe('a demo that cannot start prints one sentence', () => {
  it('an address in use, with the setting that moves it', async () => {
    const taken = createServer();
    taken.listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const address = taken.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const failed = await failedStart({ POSTERN_DEMO_LISTEN: `127.0.0.1:${port}` });
    expect(failed).toMatchObject({ code: 1, output: '' });
    expect(failed.errors.trim()).toBe(
      `127.0.0.1:${port} is in use, but Envoy's listener needs it. Stop the program that listens there, or set POSTERN_DEMO_LISTEN to another address.`,
    );
    taken.close();
  });

  it('an Envoy that cannot be run', async () => {
    const failed = await failedStart({ POSTERN_ENVOY: join(folder, 'nothing') });
    expect(failed).toMatchObject({ code: 1, output: '' });
    expect(failed.errors.trim().split('\n')).toEqual([
      expect.stringMatching(/^POSTERN_ENVOY names .*nothing, which cannot be run: /),
    ]);
  });

  it('a data directory below a file', async () => {
    const file = join(folder, 'file');
    await writeFile(file, 'x');
    const failed = await failedStart({ POSTERN_DATA_DIR: join(file, 'data') });
    expect(failed).toMatchObject({ code: 1, output: '' });
    expect(failed.errors.trim().split('\n')).toEqual([expect.stringContaining(file)]);
  });

  it("an address of the demo's issuer that is not on loopback", async () => {
    const failed = await failedStart({ POSTERN_DEMO_ISSUER_LISTEN: '0.0.0.0:8082' });
    expect(failed).toMatchObject({ code: 2, output: '' });
    expect(failed.errors).toMatch(
      /^POSTERN_DEMO_ISSUER_LISTEN: expected an address such as 127\.0\.0\.1:8082, got 0\.0\.0\.0:8082$/m,
    );
  });

  it('an invalid listen address', async () => {
    const failed = await failedStart({ POSTERN_DEMO_LISTEN: 'here' });
    expect(failed).toMatchObject({ code: 2, output: '' });
    expect(failed.errors).toMatch(/^POSTERN_DEMO_LISTEN: /);
  });
});
