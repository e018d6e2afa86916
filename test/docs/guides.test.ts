/**
 * The shell commands of the README and the guides, run as a reader would, against `postern demo` with a real Envoy and
 * PostgreSQL.
 */

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { startUpstream } from '../../src/demo/upstream.ts';
import { findParts } from '../directory/servers/packages.ts';
import { eventually } from '../server/support/eventually.ts';
import { freshDatabase } from '../support/database.ts';
import { type Demo, demoEnvironment, MAIN, startDemo } from '../support/demo.ts';
import { envoyBinary } from '../support/envoy.ts';
import { makeIssuerKey, type SigningKeyOfIssuer, signToken } from '../support/issuer.ts';
import { freeAddress } from '../support/ports.ts';
import { prepareDataDir } from '../support/prepared-cluster.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const ROOT = join(import.meta.dirname, '../..');
const missing = (await findParts(['shell'])).get('shell');
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);

/** Returns the fenced blocks of a page in one language, in the page's order. */
function blocks(page: string, language: string): readonly string[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  return [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)]
    .filter(([, of]) => of === language)
    .map(([, , block = '']) => block);
}

/**
 * Commands that need a cluster, a container engine, a package index, a company's directory, a second secret key or a
 * stopped server, and commands that do not end.
 */
const NOT_RUN =
  /\b(kubectl|helm|docker|systemctl|npx|pip|ldapsearch)\b|GATEWAY\b|https:\/\/ai\.example\.com|localhost:8080|postern ldap test|postern issuer (test|refresh|revoke-before)\b|postern audit follow --cursor|postern rotate-secret-key|postern remove-data|postern -- serve|postern (serve|demo|health|envoy drain)\b/;

let folder: string;
let demo: Demo;
let environment: NodeJS.ProcessEnv;
/** The administrator's password, for the placeholder of the guides. */
let password: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'postern-guides-'));
  chmodSync(folder, 0o711);
  environment = await demoEnvironment(folder, { POSTERN_USAGE_EVENTS_TENANTS: '["globex"]' });
  await prepareDataDir(join(folder, 'data'));
  demo = await startDemo(environment);
  password = demo.value('Password') ?? '';
});

afterAll(async () => {
  await demo?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a script in bash, in `cwd`. Rejects with what the script wrote to standard error if a command fails. */
async function bash(script: string, cwd: string): Promise<string> {
  const env = { ...environment, NODE_COMPILE_CACHE: join(ROOT, 'node_modules/.cache/test-compile-cache') };
  // `timeout` ends all processes of the script. Without --norc, bash reads its start files if standard input is a
  // socket.
  const limited = ['--kill-after=5', '100', 'bash', '--norc', '-euc', script];
  const { stdout } = await promisify(execFile)('timeout', limited, { cwd, env, maxBuffer: 1 << 26 });
  return stdout;
}

/** Replaces the addresses, the password and the paths that a reader would replace. */
function asHere(block: string): string {
  return block
    .replaceAll('http://127.0.0.1:10000', demo.value('Envoy') ?? '')
    .replaceAll(/"password":"[^"]*"/g, `"password":"${password}"`)
    .replaceAll('/etc/postern/', `${folder}/`)
    .replaceAll('/var/lib/postern/', `${folder}/`);
}

describe.skipIf(missing !== undefined)(`the README${missing === undefined ? '' : `: ${missing}`}`, () => {
  const commands = blocks('README.md', 'sh');
  const anonymous = blocks('README.md', '');

  it('shows lines that npm start prints', () => {
    const plain = (text: string) => text.replaceAll(/127\.0\.0\.1:\d+/g, 'ADDRESS').replaceAll(/psk_\S+/g, 'psk_…');
    const printed = new Set(plain(demo.text).split('\n'));
    const [shown = ''] = anonymous.filter((block) => block.includes('Administrator'));
    const lines = plain(shown).trimEnd().split('\n');
    expect(lines.filter((line) => line !== '').length).toBeGreaterThanOrEqual(9);
    for (const line of lines) {
      if (/^ +Password /.test(line)) expect(password).toMatch(/^[a-z0-9]{6}(-[a-z0-9]{6}){3}$/);
      else expect(printed).toContain(line);
    }
  });

  it('leads with five commands from npm start to an allowed request, then to the denial and the explanation that it shows', async () => {
    const [start, ...others] = commands;
    expect([start, others.length]).toEqual(['npm start\n', 6]);
    const output = await bash(others.map(asHere).join("printf '\\n=====\\n'\n"), ROOT);
    const [, , , allowed, denied = '', explained] = output.split('=====\n');
    expect(allowed).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*"x-postern-tenant":"mine"[\s\S]*"x-postern-roles":"writer"/);
    const [shown = ''] = blocks('README.md', 'json');
    expect(JSON.parse(denied)).toEqual({
      ...JSON.parse(shown),
      request_id: expect.stringMatching(/^req_[0-9a-z]{26}$/),
    });
    expect(explained).toBe(anonymous.find((block) => block.includes('resource_not_permitted')));
  });
});

/** Starts a command of a terminal that stays open, and ends it with the test. */
function open(script: string, cwd: string, env: NodeJS.ProcessEnv): { readonly child: ChildProcess; text(): string } {
  const child = spawn('bash', ['--norc', '-euc', script], { cwd, env, detached: true });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (text += String(chunk)));
  onTestFinished(async () => {
    const closed = once(child, 'close');
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGTERM');
    await closed;
  });
  return { child, text: () => text };
}

describe.skipIf(missing !== undefined)(`the first day${missing === undefined ? '' : `: ${missing}`}`, () => {
  it('leads with its commands from a platform of the reader to one that answers only what a role permits', async () => {
    const [start = '', envoy = '', ...others] = blocks('docs/first-day.md', 'sh');
    const database = await freshDatabase();
    onTestFinished(() => database.close());
    const platform = await startUpstream('127.0.0.1', 0);
    onTestFinished(() => platform.close());
    const [edge, http, grpc, admin] = await Promise.all([1, 2, 3, 4].map(() => freeAddress()));
    const cwd = mkdtempSync(join(folder, 'first-'));
    const env = {
      PATH: `${dirname(await envoyBinary())}:${process.env['PATH']}`,
      POSTERN_DATABASE_URL: database.url,
      POSTERN_SECRET_KEY: 'f'.repeat(32),
      POSTERN_HTTP_LISTEN: http,
      POSTERN_GRPC_LISTEN: grpc,
      POSTERN_ADMIN_LISTEN: admin,
    };
    const inOrder = (script: string): string =>
      `postern() { "${process.execPath}" "${MAIN}" "$@"; }\n${script}`
        .replaceAll('127.0.0.1:9000', `127.0.0.1:${platform.port}`)
        .replaceAll('127.0.0.1:10000', String(edge));
    const server = open(inOrder(start), cwd, env);
    await eventually('the server is ready', async () => server.text().includes('"msg":"ready"'));
    const password = /Password +(\S+)/.exec(server.text())?.[1] ?? expect.fail(server.text());
    const placed = `--listen ${edge} --grpc ${grpc} --http ${http} > envoy.yaml\nsed -i 's/port_value: 9901/port_value: 0/' envoy.yaml`;
    expect(envoy).toContain('> envoy.yaml');
    const proxy = open(
      inOrder(envoy.replace('> envoy.yaml', placed).replace('envoy -c', 'envoy --disable-hot-restart -c')),
      cwd,
      env,
    );
    await eventually(`Envoy asks Postern: ${proxy.text()}`, async () => {
      const answer = await fetch(`http://${edge}/v1/models`).catch(() => undefined);
      return answer?.status === 401;
    });
    const script = inOrder(others.join('\n').replace(/"password":"[^"]*"/, `"password":"${password}"`));
    const { stdout } = await promisify(execFile)('bash', ['--norc', '-euc', script], { cwd, env });
    const [allowed = '', denied = ''] = stdout.split('\n').filter((line) => line.startsWith('{'));
    expect(JSON.parse(allowed)).toMatchObject({
      x_echo: { 'x-postern-tenant': 'mine', 'x-postern-roles': 'writer' },
    });
    expect(JSON.parse(denied)).toMatchObject({ status: 403, code: 'resource_not_permitted' });
  });
});

describe.skipIf(missing !== undefined)(
  `the commands of a guide succeed${missing === undefined ? '' : `: ${missing}`}`,
  () => {
    /** Variables that a page expects, from pages that it names. */
    const login = (): string => blocks('docs/api.md', 'sh')[0] ?? '';
    const developer = (): string =>
      `SUBJECT=$(curl -s "$POSTERN/v1/iam/users?tenant_id=acme&email=developer@acme.example" -H "authorization: Bearer $TOKEN" | jq -r '.data[0].id')\n`;
    const meteringKey = (): string =>
      `KEY=$(curl -s $POSTERN/v1/iam/api-keys -H "authorization: Bearer $TOKEN" -H 'x-tenant-id: globex' -H 'content-type: application/json' \\
      -d '{"description":"metering","scopes":["usage:write"],"expires_in_days":1}' | jq -r .key)\n`;
    const setupFile = (): string =>
      `cat > setup.yaml <<'END_OF_SETUP'\n${blocks('docs/declarative.md', 'yaml')[0]}END_OF_SETUP\n`;
    /** A refused request ends the script, and every spelling of the command runs this checkout. */
    const functions = (): string => `
    curl() { command curl --fail-with-body --show-error "$@"; }
    postern() { "${process.execPath}" "${MAIN}" "$@"; }
    # The exit code 1 is a denial.
    explain() { postern "$@" || [ $? = 1 ]; }
    npm() { while [ "$1" != -- ]; do shift; done; shift; "$([ "$1" = explain ] && echo explain || echo postern)" "$@"; }
    # The failed login is audited, so that the command has a next line to write and notices that its reader has ended.
    siem-forwarder() {
      head -n 1
      command curl -so/dev/null ${demo.value('Envoy')}/v1/auth/login -H 'content-type: application/json' -d '{"email":"nobody@acme.example","password":"-"}'
    }
  `;
    const own = (page: string): readonly string[] =>
      blocks(page, 'sh')
        .map((block) =>
          block
            .split(/(?<!\\)\n/)
            .filter((command) => !command.startsWith('kubectl'))
            .join('\n'),
        )
        .filter((block) => !NOT_RUN.test(block));

    const run = (script: string): Promise<string> => {
      const cwd = mkdtempSync(join(folder, 'cwd-'));
      writeFileSync(join(cwd, 'postern.yaml'), '{}\n');
      return bash(`set -o pipefail\n${functions()}${asHere(script)}`, cwd);
    };

    /** The claims of a page as they are, except that the token was issued 10 s ago, signed by a key made here. */
    const tokenWith = (claims: string, key: SigningKeyOfIssuer, header: Readonly<Record<string, unknown>> = {}) => {
      const shown: Readonly<Record<string, unknown>> = JSON.parse(claims);
      const iat = Math.floor(Date.now() / 1000) - 10;
      const times = { iat, exp: iat + 300, ...('nbf' in shown ? { nbf: iat } : {}) };
      return signToken(key, { ...shown, ...times }, header);
    };
    /** The member of an issuer whose keys cannot be fetched here, after its value of `iss`. */
    const withKeys = (script: string, iss: string, { jwk }: SigningKeyOfIssuer): string => {
      expect(script).toContain(`"issuer":"${iss}"`);
      return script.replaceAll(`"issuer":"${iss}"`, `"issuer":"${iss}", "jwks":{"keys":[${JSON.stringify(jwk)}]}`);
    };

    it('docs/identity.md, with tokens of the claims that it shows', async () => {
      const [keycloak = '', kubernetes = '', github = ''] = blocks('docs/identity.md', 'json');
      const [realm, cluster, actions] = ['keycloak', 'cluster', 'actions'].map((kid) => makeIssuerKey('RS256', kid));
      if (realm === undefined || cluster === undefined || actions === undefined) throw new Error('a key is missing');
      const systems = `
        kubectl() { case "$*" in
          'get --raw /openid/v1/jwks') echo '${JSON.stringify({ keys: [cluster.jwk] })}';;
          # The API server signs without a type.
          'create token nightly --namespace batch --audience postern') echo ${tokenWith(kubernetes, cluster, { typ: undefined })};;
          *) return 1;;
        esac; }
        curl() { case "$*" in
          */protocol/openid-connect/token*) echo '{"access_token":"${tokenWith(keycloak, realm)}"}';;
          *https://actions.example/token?*audience=postern*) echo '{"value":"${tokenWith(github, actions, { x5t: 'x' })}"}';;
          *) command curl --fail-with-body --show-error "$@";;
        esac; }
        ACTIONS_ID_TOKEN_REQUEST_URL='https://actions.example/token?api-version=2.0'
        ACTIONS_ID_TOKEN_REQUEST_TOKEN=opaque
      `;
      const status = `command curl -s -o/dev/null -w '%{http_code}' $POSTERN/v1/auth/me -H "authorization: Bearer`;
      const commands = [...blocks('docs/identity.md', 'sh'), `${status} $GRACE"\n`, `${status} $POD_TOKEN"\n`].join(
        "\nprintf '\\n=====\\n'\n",
      );
      const script = withKeys(
        withKeys(commands, 'https://login.acme.example/realms/staff', realm),
        'https://token.actions.githubusercontent.com',
        actions,
      );
      const output = (await run(`${systems}${script}`)).split('=====\n').map((part) => part.trim());
      const [
        ,
        ,
        tested = '',
        person = '',
        linked,
        bound = '',
        pod = '',
        run1 = '',
        ci = '',
        login = '',
        exchanged,
        ended = '',
        issuers = '',
        ...afterwards
      ] = output;
      const [accepted, ...steps] = tested.split('\n');
      expect(accepted).toBe('true');
      expect(steps.map((step) => JSON.parse(step)[1])).toEqual(steps.map(() => 'passed'));
      expect(person).toContain('"x-postern-tenant":"acme"');
      expect(person.replaceAll(/\s+/g, '')).toMatch(
        /\{"name":"GraceHopper","source":"issuer:keycloak","roles":\["developer"\]\}$/,
      );
      expect(linked).toContain('"issuer":"keycloak"');
      expect(bound).toMatch(/"pasted":true[\s\S]*"issuer":"cluster"/);
      expect(run1).toContain('"issuer":"github"');
      for (const answer of [pod, ci]) {
        expect(answer).toContain('"object":"chat.completion"');
        expect(answer).toContain('"x-postern-tenant":"acme"');
      }
      expect(login).toMatch(/"client_secret_set":true[\s\S]*"label":"Acme staff"/);
      expect(JSON.parse(exchanged ?? '')).toEqual({ expires_in: expect.any(Number), scope: 'chat:write' });
      expect(Date.parse(ended)).toBeLessThanOrEqual(Date.now());
      expect(issuers).toMatch(/^acme\/cluster {2}oidc [\s\S]*^passed +principal +The token proves the API key key_/m);
      // Only the tokens of the issuer are refused.
      expect(afterwards).toEqual(['401', '200']);
    });

    /** An issuer, a key with a proof, and a token that proves it. */
    const ciToken = (): string => {
      const key = makeIssuerKey();
      const iss = 'https://ci.globex.example';
      const post = (path: string, body: object): string =>
        `curl -s $POSTERN/v1/iam/${path} -H "authorization: Bearer $TOKEN" -H 'x-tenant-id: globex' -H 'content-type: application/json' -d '${JSON.stringify(body)}'\n`;
      const issuer = { name: 'ci', issuer: iss, audiences: ['postern'], jwks: { keys: [key.jwk] } };
      const proof = { issuer: 'ci', subject: 'build' };
      const bound = { description: 'build', scopes: ['chat:write', 'models:read'], expires_in_days: 1, proof };
      const claims = JSON.stringify({ iss, sub: 'build', aud: 'postern' });
      return `${post('issuers', issuer)}${post('api-keys', bound)}CI_TOKEN=${tokenWith(claims, key)}\n`;
    };

    it('docs/api.md', async () => {
      const [first = '', exchange = '', tenant = '', ...others] = own('docs/api.md');
      expect([exchange, tenant]).toEqual([
        expect.stringContaining('subject_token="$CI_TOKEN"'),
        expect.stringContaining('/iam/tenants'),
      ]);

      const output = await run([first, tenant, meteringKey(), ciToken(), exchange, ...others].join('\n'));
      expect(output).toContain('{"accepted":1,"duplicates":0}');
    });

    it('docs/policies.md', async () => {
      const output = await run([login(), developer(), ...own('docs/policies.md')].join('\n'));
      expect(output).toContain('"code":"denied_by_policy"');
    });

    it('docs/declarative.md, on databases of its own', async () => {
      const databases = await Promise.all([freshDatabase(), freshDatabase()]);
      try {
        const [from, to] = databases;
        const [first = '', moving = ''] = own('docs/declarative.md');
        const files = [
          setupFile(),
          `echo '{ database: { url: "${from.url}" }, secret-key: "${'o'.repeat(32)}" }' > old.yaml\n`,
          `echo '{ database: { url: "${to.url}" }, secret-key: "${'n'.repeat(32)}" }' > new.yaml\n`,
          'export POSTERN_CONFIG=old.yaml; unset POSTERN_DATA_DIR\n',
        ];
        const output = await run(files.join('') + first + moving);
        expect(output.match(/^\+ create user acme\/ada@acme\.example$/gm)).toHaveLength(3);
      } finally {
        await Promise.all(databases.map((database) => database.close()));
      }
    });

    it('docs/decision-log.md', async () => {
      writeFileSync(join(folder, 'postern.yaml'), '{}\n');
      // The command fails when its reader ends.
      const commands = own('docs/decision-log.md').join('\n').replace('siem-forwarder', '$& || true');
      expect(JSON.parse(await run(commands))).toHaveProperty('cursor');
    });

    it.each(['docs/envoy.md', 'docs/istio.md', 'docs/envoy-gateway.md', 'docs/kubernetes.md', 'docs/trial.md'])(
      '%s',
      async (page) => {
        const commands = own(page);
        expect(commands).not.toHaveLength(0);
        await run(commands.join('\n'));
      },
    );

    it('docs/webhooks.md', async () => {
      const output = await run([login(), ...own('docs/webhooks.md')].join('\n'));
      expect(output).toMatch(/"secret":"whsec_[^"]+"/);
    });

    /** All commands together take longer than one script may on a busy machine. */
    const ofBudgetsOrWebhooks = (block: string): boolean => /postern (budget|webhook) /.test(block);
    const cli = own('docs/cli.md');

    it('docs/cli.md, of budgets and webhooks', async () => {
      const receiver = environment['POSTERN_DEMO_ISSUER_LISTEN'] ?? '';
      // The webhook of the demo has a receiver that answers.
      const prepared = `export POSTERN_WEBHOOKS_ALLOWED_HOSTS='["${receiver}"]'
        WEBHOOK=$(postern webhook list --tenant acme | grep -F 'http://${receiver}/' | cut -d ' ' -f 1)
        postern budget create '${blocks('docs/budgets.md', 'json')[0]}' --tenant acme\n`;
      const commands = cli
        .filter(ofBudgetsOrWebhooks)
        .join('\n')
        .replaceAll(/whk_\w{26}/g, '$$WEBHOOK')
        .replace(/dlv_\w{26}/, "$$(postern webhook deliveries $$WEBHOOK | awk 'NR == 1 { print $$1 }')");
      await run(prepared + commands);
    });

    it('docs/cli.md, of everything else', async () => {
      writeFileSync(join(folder, 'postern.yaml'), '{}\n');
      const commands = cli
        .filter((block) => !ofBudgetsOrWebhooks(block))
        .join('\n')
        .replace('admin@example.com', 'admin@localhost')
        .replace('postern explain', 'explain explain');
      await run([setupFile(), commands].join('\n'));
    });

    it('every page with commands is run here, or has only commands that cannot be', () => {
      const pages = readdirSync(join(ROOT, 'docs')).filter((name) => name.endsWith('.md'));
      const run = [
        'api',
        'policies',
        'declarative',
        'decision-log',
        'envoy',
        'trial',
        'istio',
        'envoy-gateway',
        'kubernetes',
        'cli',
        'errors',
        'first-day',
        'identity',
        'webhooks',
      ];
      for (const page of pages) {
        if (run.includes(page.replace('.md', ''))) continue;
        expect([page, own(`docs/${page}`).filter((block) => block.trim() !== '')]).toEqual([page, []]);
      }
    });
  },
);
