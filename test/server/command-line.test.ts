/** The commands of `postern`: what each prints, where, and how it ends. One of each kind runs as a process. */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { access, writeFile } from 'node:fs/promises';
import { createServer, type Server as TcpServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { type CommandResult, runCommand } from '../support/command.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { freeAddress } from '../support/ports.ts';
import { prepareDataDir } from '../support/prepared-cluster.ts';
import { ADMIN, call, decider, done, login, makeKey, makeUser, SECRET_KEY, tryLogin } from './support/client.ts';
import { becomes } from './support/eventually.ts';
import { type Finished, openStand, type Server, type Stand } from './support/postern.ts';
import { postmasterOf } from './support/postgres.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const execute = promisify(execFile);
const MAIN = join(import.meta.dirname, '../../src/main.ts');

let stand: Stand;
beforeAll(async () => {
  stand = await openStand();
});
afterAll(() => stand?.close());

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

function expectOneSentence({ stderr }: CommandResult | Finished, form: RegExp): void {
  expect(stderr).toMatch(form);
  expect(stderr.trimEnd()).not.toContain('\n');
}

describe('usage', () => {
  it.each([
    { args: ['policy'], says: /^Unknown command: policy\.$/m },
    { args: ['serve', '--prot', '80'], says: /^Unknown option '--prot'\.$/m },
    { args: ['serve', 'a-password'], says: /^This command accepts only options\. Remove the other arguments\.$/m },
    { args: ['policy', 'enable', 'x'], says: /^Unknown command: policy enable\.$/m },
    { args: ['policy', 'disable'], says: /^Give the name of exactly one policy\.$/m },
    { args: ['explain', '--method', 'GET'], says: /^Give both --method and --path\.$/m },
    {
      args: ['explain', '--method', 'GET', '--path', '/x', '--subject', ''],
      says: /^--subject: Must have 1 to 254 characters; you sent 0\.$/m,
    },
    {
      args: ['explain', '--method', 'GET', '--path', '/x', '--subject', 'a@b.c', '--credential', 'x'],
      says: /^Give --subject or --credential, not both\.$/m,
    },
    {
      args: ['explain', '--method', 'GET', '--path', '/x', '--ip', '203.0.113'],
      says: /^--ip: Give an IPv4 or IPv6 address\.$/m,
    },
    {
      args: ['reset-admin', '--create', '--email', 'no address', '--yes'],
      says: /^--email must be an email address in ASCII characters\.$/m,
    },
    { args: ['audit', 'follow', '--cursor', ''], says: /^Give --cursor FILE, or --after CURSOR /m },
    { args: ['serve', '--config', ''], says: /^--config needs the name of a file\.$/m },
  ])('$args is refused with what there is, and nothing is started', async ({ args, says }) => {
    const dataDir = join(stand.folder, 'unused');
    const { code, stdout, stderr } = await runCommand(args, { POSTERN_DATA_DIR: dataDir });
    expect(code).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toMatch(says);
    expect(stderr).toContain(`postern ${args[0]}`);
    expect(stderr).not.toContain('a-password');
    expect(await exists(dataDir)).toBe(false);
  });

  it('of a command that does not exist is refused in two lines, which no list of all commands scrolls away', async () => {
    const { code, stdout, stderr } = await runCommand(['sreve'], {});
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toBe('Unknown command: sreve; did you mean serve?\npostern --help lists the commands.\n');
  });

  it('that is wrong ends the process with the exit code 2', async () => {
    const { code, stdout, stderr } = await stand.run(['policy', 'enable', 'x']);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/^Unknown command: policy enable\.$/m);
  });

  it.each([[[]], [['--help']], [['help']]])('%j shows all commands', async (args) => {
    const { code, stdout } = await runCommand(args, {});
    expect(code).toBe(0);
    for (const command of [
      'serve',
      'demo',
      'migrate',
      'check-config',
      'explain',
      'policy disable',
      'reset-admin',
      'rotate-secret-key',
      'rotate-signing-key',
    ]) {
      expect(stdout).toContain(`postern ${command}`);
    }
  });

  it.each([[['ldap', 'test', '--help']], [['ldap', '--help']], [['ldap', 'test', 'alice', '-h']]])(
    '%j shows that command alone',
    async (args) => {
      const { code, stdout, stderr } = await runCommand(args, {});
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout).toMatch(/^ {2}postern ldap test \[--directory NAME\] USERNAME$/m);
      expect(stdout).not.toContain('postern serve');
    },
  );

  it('prints its version', async () => {
    const { code, stdout } = await stand.run(['--version']);
    expect([code, stdout]).toEqual([0, `${manifest.version}\n`]);
  });
});

describe('check-config', () => {
  it('shows every setting with where it comes from, and no secret', async () => {
    const file = join(stand.folder, 'good.yaml');
    const secrets = ['pg-password-of-a-test', 'a bootstrap password of a test', SECRET_KEY];
    await writeFile(
      file,
      [
        'database:',
        '  url: postgresql://postern:pg-password-of-a-test@db.example.com/postern',
        'bootstrap:',
        '  password: a bootstrap password of a test',
        'audience: other-platform',
      ].join('\n'),
    );
    const env = { POSTERN_SECRET_KEY: SECRET_KEY, POSTERN_WORKERS: '3' };
    const { code, stdout, stderr } = await runCommand(['check-config', '--config', file], env);
    expect(stderr).toBe('');
    expect(code).toBe(0);
    for (const secret of secrets) expect(stdout).not.toContain(secret);
    expect(stdout).toMatch(/^database\.url: \*+ +# .*good\.yaml:2$/m);
    expect(stdout).toMatch(/^secret-key: \*+ +# POSTERN_SECRET_KEY$/m);
    expect(stdout).toMatch(/^audience: other-platform +# .*good\.yaml:5$/m);
    expect(stdout).toMatch(/^workers: 3 +# POSTERN_WORKERS$/m);
    expect(stdout).toMatch(/^token\.access-ttl: 3600s +# default$/m);
  });
});

describe.skipIf(!existsSync('/dev/full'))('output to a full disk', () => {
  const runToFullDisk = (...args: readonly string[]) =>
    execute('sh', ['-c', 'exec "$@" > /dev/full', 'sh', process.execPath, MAIN, ...args]).then(
      () => 0,
      ({ code, stderr }: { code: number; stderr: string }) => [code, stderr],
    );

  it('exits with 1 and says that the output is not complete', async () => {
    const message =
      'Standard output could not be written, so the output is not complete: ENOSPC: no space left on device, write.\n';
    expect(await runToFullDisk('envoy', 'config')).toEqual([1, message]);
  });

  it('leaves the exit code of a command whose output goes elsewhere', async () => {
    expect(await execute(process.execPath, [MAIN, 'envoy', 'config'])).toMatchObject({ stderr: '' });
    expect(await runToFullDisk('envoy', 'config', '--profile', 'x')).toEqual([2, expect.stringContaining('--profile')]);
  });
});

describe('output to a pipe', () => {
  it('is complete, also if the reader is slower than the command and the output is longer than a pipe holds', async () => {
    const args = [MAIN, 'envoy', 'config', '--profile', 'sidecar'];
    const { stdout: whole } = await execute(process.execPath, args);
    // The shell reads the first line byte by byte.
    const slowly = '"$@" | { IFS= read -r first; printf "%s\\n" "$first"; cat; }';
    const { stdout } = await execute('sh', ['-c', slowly, 'sh', process.execPath, ...args]);
    expect(Buffer.byteLength(whole)).toBeGreaterThan(65_536);
    expect(stdout).toBe(whole);
  });
});

describe('a configuration that is wrong', () => {
  interface Wrong {
    readonly what: string;
    readonly yaml?: string;
    readonly env?: NodeJS.ProcessEnv;
    readonly says: readonly RegExp[];
  }

  it.each<Wrong>([
    {
      what: 'a wrong value',
      yaml: 'audience: platform\ndatabase:\n  pool-size: many\n',
      says: [/^\S*wrong\.yaml:3:3: database\.pool-size: expected a whole number from 2 to 1000, got many$/m],
    },
    {
      what: 'an unknown key',
      yaml: '# a comment\n\ntoken:\n  acess-ttl: 1h\n',
      says: [/^\S*wrong\.yaml:4:3: token\.acess-ttl: unknown key; did you mean token\.access-ttl\?$/m],
    },
    {
      what: 'an unknown variable',
      env: { POSTERN_WORKRES: '2' },
      says: [/^POSTERN_WORKRES: unknown variable; did you mean POSTERN_WORKERS\?$/m],
    },
    {
      what: 'no YAML',
      yaml: 'audience: platform\nroutes: [}\n',
      says: [/^\S*wrong\.yaml:2:\d+: not valid YAML here/m],
    },
    {
      what: 'everything at once',
      yaml: 'workers: 0\nlog:\n  level: loud\n',
      env: { POSTERN_AUDIENCE: 'two words', POSTERN_DATABASE_URL: 'postgresql://user:hidden-in-a-url@localhost/x' },
      says: [
        /wrong\.yaml:1:\d+: workers: /,
        /wrong\.yaml:3:\d+: log\.level: /,
        /^POSTERN_AUDIENCE: /m,
        /^secret-key: required with database/m,
      ],
    },
  ])(
    '$what stops the start with where it is and what is expected; nothing has begun',
    async ({ yaml, env = {}, says }) => {
      const file = join(stand.folder, 'wrong.yaml');
      await writeFile(file, yaml ?? '');
      const dataDir = join(stand.folder, 'unused');
      const finished = await runCommand(['serve'], { POSTERN_CONFIG: file, POSTERN_DATA_DIR: dataDir, ...env });
      expect(finished.code).toBe(2);
      expect(finished.stdout).toBe('');
      for (const form of says) expect(finished.stderr).toMatch(form);
      expect(finished.stderr.trimEnd().split('\n')).toHaveLength(says.length);
      expect(finished.stderr).not.toContain('hidden-in-a-url');
      expect(await exists(dataDir)).toBe(false);
    },
  );

  it('is not there at all', async () => {
    const finished = await stand.run(['serve', '--config', 'nowhere.yaml']);
    expect(finished.code).toBe(2);
    expectOneSentence(finished, /^nowhere\.yaml: the file does not exist\n$/);
  });
});

describe('an address that is taken', () => {
  let taken: string;
  let other: TcpServer;
  let dataDir: string;

  beforeAll(async () => {
    dataDir = await prepareDataDir(join(stand.folder, 'taken'));
    taken = await freeAddress();
    other = createServer().listen(Number(taken.split(':')[1]), '127.0.0.1');
  });
  afterAll(() => void other?.close());

  it.each([
    { setting: 'http.listen', variable: 'POSTERN_HTTP_LISTEN', workers: '1' },
    { setting: 'grpc.listen', variable: 'POSTERN_GRPC_LISTEN', workers: '1' },
    { setting: 'admin.listen', variable: 'POSTERN_ADMIN_LISTEN', workers: '1' },
    { setting: 'http.listen', variable: 'POSTERN_HTTP_LISTEN', workers: '2' },
    { setting: 'grpc.listen', variable: 'POSTERN_GRPC_LISTEN', workers: '2' },
    { setting: 'admin.listen', variable: 'POSTERN_ADMIN_LISTEN', workers: '2' },
  ])(
    'for $setting with $workers workers ends the start with one sentence that names it, and PostgreSQL with it',
    async (row) => {
      const { setting, variable, workers } = row;
      const env = { POSTERN_DATA_DIR: dataDir, POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password, POSTERN_WORKERS: workers };
      const finished = await stand.run(['serve'], { ...env, [variable]: taken });
      expect(finished.code).toBe(1);
      const escaped = setting.replace('.', '\\.');
      expectOneSentence(
        finished,
        new RegExp(`^${escaped}: cannot listen on ${taken}\\. .*set ${escaped} \\(${variable}\\).*\\.\\n$`),
      );
      expect(finished.stdout).not.toContain('"ready"');
      expect(await postmasterOf(dataDir)).toBeUndefined();
    },
  );
});

describe('migrate', () => {
  it('brings an empty database up to date, and says so when there is nothing to do', async () => {
    const database = await freshDatabase('');
    onTestFinished(() => database.close());
    const env = { POSTERN_DATABASE_URL: database.url, POSTERN_SECRET_KEY: SECRET_KEY };
    const first = await stand.run(['migrate'], env);
    expect([first.code, first.stderr]).toEqual([0, '']);
    expect(first.stdout).toMatch(/^Migrated: 0001-\S+\.sql.*\.\n$/);
    const second = await runCommand(['migrate'], env);
    expect([second.code, second.stderr]).toEqual([0, '']);
    expect(second.stdout).toBe('The database is up to date.\n');
  });
});

describe('beside a server that runs', () => {
  let database: FreshDatabase;
  let env: NodeJS.ProcessEnv;
  let server: Server;
  let admin: string;

  beforeAll(async () => {
    database = await freshDatabase();
    env = { POSTERN_DATABASE_URL: database.url, POSTERN_SECRET_KEY: SECRET_KEY };
    server = await stand.serve({ ...env, POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password });
    admin = await login(server.http);
  });
  afterAll(async () => {
    await server?.stop();
    await database?.close();
  });

  it('explain says why as JSON; its exit code is 0 for an allow and 1 for a denial', async () => {
    const { key } = await makeKey(server.http, admin);
    const subject = ADMIN.email;
    const allowed = await stand.run(
      ['explain', '--subject', subject, '--method', 'GET', '--path', '/v1/chat/history'],
      env,
    );
    expect([allowed.code, allowed.stderr]).toEqual([0, '']);
    expect(JSON.parse(allowed.stdout)).toMatchObject({ decision: 'allow', status: 200, permission: 'chat:read' });

    const question = ['explain', '--method', 'GET', '--path', '/v1/models'];
    const denied = await runCommand(question, { ...env, POSTERN_CREDENTIAL: key });
    expect([denied.code, denied.stderr]).toEqual([1, '']);
    expect(JSON.parse(denied.stdout)).toMatchObject({ decision: 'deny', status: 403, code: 'insufficient_permission' });
    expect(denied.stdout).not.toContain(key);

    const nobody = await runCommand([...question, '--subject', 'usr_00000000000000000000000000'], env);
    expect([nobody.code, nobody.stdout]).toEqual([1, '']);
    expectOneSentence(nobody, /subject/);
  });

  it.each(['issuer', 'webhook', 'budget'])('%s list names a tenant that does not exist', async (what) => {
    const absent = await runCommand([what, 'list', '--tenant', 'nobody'], env);
    expect([absent.code, absent.stdout]).toEqual([1, '']);
    expectOneSentence(absent, /^The tenant does not exist/);
    expect(await runCommand([what, 'list', '--tenant', 'default'], env)).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  it('policy disable names a global policy as one', async () => {
    const policy = { name: 'no-audio', effect: 'deny', actions: ['audio:*'], resources: ['*'], global: true };
    await done(server.http, 'POST', '/v1/iam/policies', { token: admin, body: policy });
    const { code, stdout, stderr } = await runCommand(['policy', 'disable', 'no-audio'], env);
    expect([code, stdout, stderr]).toEqual([0, 'Disabled: no-audio, a global policy.\n', '']);
  });

  it('policy disable lets an author back in who locked itself out', async () => {
    await done(server.http, 'POST', '/v1/iam/tenants', { token: admin, body: { id: 'locked', name: 'Locked' } });
    const author = await makeUser(server.http, admin, { roles: ['tenant-admin'], tenant: 'locked' });
    const token = await login(server.http, author);
    const path = '/v1/iam/policies';
    const policy = { name: 'nobody-manages', effect: 'deny', actions: ['admin:*'], resources: ['*'] };
    const guarded = await call(server.http, 'POST', path, { token, body: policy });
    expect([guarded.status, guarded.body['code']]).toEqual([409, 'would_lock_out']);
    await done(server.http, 'POST', `${path}?force=true`, { token, body: policy });
    expect((await call(server.http, 'GET', path, { token })).body['code']).toBe('denied_by_policy');

    const missing = await runCommand(['policy', 'disable', 'no-such-policy'], env);
    expect(missing.code).toBe(1);
    expectOneSentence(missing, /policy/);
    const { code, stdout, stderr } = await runCommand(
      ['policy', 'disable', 'nobody-manages', '--tenant', 'locked'],
      env,
    );
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toBe('Disabled: nobody-manages, a policy of the tenant locked.\n');
    await becomes(
      'the author is let in',
      200,
      async () => (await call(server.http, 'GET', path, { token })).status,
      10_000,
    );
  });

  it('health exits 0 while the server answers, also if another setting is wrong now, and 1 in one sentence at an address where none does', async () => {
    const healthy = await stand.run(['health'], { ...env, POSTERN_ADMIN_LISTEN: server.admin });
    expect([healthy.code, healthy.stderr]).toEqual([0, '']);
    const edited = await stand.run(['health'], {
      ...env,
      POSTERN_ADMIN_LISTEN: server.admin,
      POSTERN_LOG_LEVEL: 'loud',
    });
    expect([edited.code, edited.stderr]).toEqual([0, '']);
    const wrong = await runCommand(['health'], { ...env, POSTERN_ADMIN_LISTEN: 'nowhere' });
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringMatching(/^POSTERN_ADMIN_LISTEN: expected host:port/)]);
    const absent = await runCommand(['health'], { ...env, POSTERN_ADMIN_LISTEN: await freeAddress() });
    expect([absent.code, absent.stdout]).toEqual([1, '']);
    expectOneSentence(absent, /^No server answers at http:/);
  });

  it('rotate-signing-key publishes the next key at the running server, prints the schedule, and invalidates no token', async () => {
    const kids = async (): Promise<readonly unknown[]> => {
      const { keys } = (await done(server.http, 'GET', '/.well-known/jwks.json')).body;
      return Array.isArray(keys) ? keys.map((key: { kid?: unknown }) => key.kid) : [];
    };
    const [current] = await kids();
    const { code, stdout, stderr } = await stand.run(['rotate-signing-key', '--yes'], env);
    expect([code, stderr]).toEqual([0, '']);
    const next = /^Published: +(\S+)$/m.exec(stdout)?.[1];
    const takeover = Date.parse(/^Signs from: (\S+)\. Until that time/m.exec(stdout)?.[1] ?? '');
    expect(takeover - Date.now()).toBeGreaterThan(23 * 3_600_000);
    expect(stdout).toContain(`Until that time, ${String(current)} signs.`);
    await becomes('the next key is published', 2, async () => (await kids()).length, 10_000);
    expect(await kids()).toEqual([current, next]);
    expect((await call(server.http, 'GET', '/v1/auth/me', { token: admin })).status).toBe(200);

    const again = await runCommand(['rotate-signing-key', '--yes'], env);
    expect([again.code, again.stdout]).toEqual([
      0,
      stdout.replace(/^Published: +/, 'Already published, nothing changed:  '),
    ]);
    const stranger = await runCommand(['rotate-signing-key', '--yes'], {
      ...env,
      POSTERN_SECRET_KEY: 'another secret key, as long as it has to be',
    });
    expect(stranger.code).toBe(1);
    expectOneSentence(stranger, /secret-key is not the key with which/);
  });

  it.each(['reset-admin', 'rotate-signing-key', 'rotate-secret-key'])(
    '%s changes nothing and exits 2 without a terminal and without --yes',
    async (command) => {
      const keys = async () => (await done(server.http, 'GET', '/.well-known/jwks.json')).body;
      const before = await keys();
      const { code, stdout, stderr } = await runCommand([command], {
        ...env,
        POSTERN_SECRET_KEY_PREVIOUS: 'p'.repeat(40),
      });
      expect([code, stdout]).toEqual([2, '']);
      expect(stderr).toMatch(/Nothing was changed\. Run the command at a terminal to confirm it, or add --yes\.\n$/);
      expect(await keys()).toEqual(before);
      expect((await call(server.http, 'GET', '/v1/auth/me', { token: admin })).status).toBe(200);
    },
  );

  it('reset-admin prints a password that logs in, ends the old sessions and the old password', async () => {
    const gate = decider(server.grpc);
    onTestFinished(() => gate.close());
    expect(await gate.decide(admin)).toBe('allow');
    const { code, stdout, stderr } = await stand.run(['reset-admin', '--yes'], env);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^Tenant: +default$/m);
    const password = /^Password: +(\S+)$/m.exec(stdout)?.[1] ?? '';
    await becomes('the old session is over', 'invalid_credential', () => gate.decide(admin), 10_000);
    expect((await tryLogin(server.http, ADMIN)).status).toBe(401);
    admin = await login(server.http, { email: ADMIN.email, password });
    expect(await gate.decide(admin)).toBe('allow');
  });

  it('reset-admin refuses a user that could not log in, exits 1 and says how to get in', async () => {
    const { knex } = database.db;
    await knex('tenants').insert({ id: 'closed', name: 'Closed', status: 'suspended' });
    await knex('users').insert({
      id: 'usr_00000000000000000000000009',
      tenant_id: 'closed',
      email: 'closed@example.test',
      name: 'Closed',
    });
    const refused = await runCommand(['reset-admin', '--yes', '--create', '--email', 'closed@example.test'], env);
    expect([refused.code, refused.stdout]).toEqual([1, '']);
    expectOneSentence(
      refused,
      /^closed@example\.test belongs to a user of the tenant closed, which is suspended\. .* with --create --email/,
    );
    const other = await runCommand(['reset-admin', '--yes', '--create', '--email', 'way-in@example.test'], env);
    const password = /^Password: +(\S+)$/m.exec(other.stdout)?.[1] ?? '';
    expect((await tryLogin(server.http, { email: 'way-in@example.test', password })).status).toBe(200);
  });
});
