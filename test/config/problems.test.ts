import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { configFile } from '../../src/config/file.ts';
import { loadConfig } from '../../src/config/load.ts';
import { envName } from '../../src/config/setting.ts';
import { ALL_SETTINGS } from '../../src/config/settings.ts';
import { load, problemsOf, withDirectory } from './support/load.ts';

describe('a wrong value is named with file, line, path and what was expected', () => {
  it.each([
    ['\n\ngrpc:\n  listen: 99999', 'postern.yaml:4:3: grpc.listen: expected host:port or unix:/path, got 99999'],
    ['http.listen: unix:/x', 'postern.yaml:1:1: http.listen: expected host:port, got unix:/x'],
    ['http.listen: 127.0.0.1:65536', 'postern.yaml:1:1: http.listen: expected host:port, got 127.0.0.1:65536'],
    ['http.listen: "[1:2]:80"', 'postern.yaml:1:1: http.listen: expected host:port, got [1:2]:80'],
    ['http:\n  listen:\n    port: 1', 'postern.yaml:2:3: http.listen: expected host:port, got a map'],
    ['http: 80', 'postern.yaml:1:1: http: expected a map of settings'],
    ...['0', '1023', '17 MiB', '16777217', '1 GiB', '1.5 MiB', '1mib', '-1'].map((size): [string, string] => [
      `inspect.max-body: ${size}`,
      `postern.yaml:1:1: inspect.max-body: expected a size from 1 KiB to 16 MiB, such as 1 MiB, got ${size.includes(' ') ? JSON.stringify(size) : size}`,
    ]),
    ['workers: 0', 'postern.yaml:1:1: workers: expected a whole number from 1 to 64, got 0'],
    ['workers: 1.5', 'postern.yaml:1:1: workers: expected a whole number from 1 to 64, got 1.5'],
    ['workers: [1]', 'postern.yaml:1:1: workers: expected a whole number from 1 to 64, got a list'],
    ['forward-credential: yes', 'postern.yaml:1:1: forward-credential: expected true or false, got yes'],
    [
      'token: {access-ttl: 3600}',
      'postern.yaml:1:9: token.access-ttl: expected a duration in whole seconds, such as 3600s or 1h, got 3600',
    ],
    [
      'token.refresh-ttl: -1d',
      'postern.yaml:1:1: token.refresh-ttl: expected a duration of at least 1s, such as 500s, 5m, 1h or 7d, got -1d',
    ],
    [
      'log.level: loud',
      'postern.yaml:1:1: log.level: expected one of fatal, error, warn, info, debug, trace, silent, got loud',
    ],
    [
      'http:\n  trusted-proxies:\n    - 10.0.0.0/8\n    - 10.0.0.1/8',
      'postern.yaml:4:7: http.trusted-proxies[1]: expected an IP address or a CIDR block without host bits, got 10.0.0.1/8',
    ],
    [
      'http.origins: [https://x.example/]',
      'postern.yaml:1:16: http.origins[0]: expected an origin, such as https://console.example.com, got https://x.example/',
    ],
    [
      'http.origins: https://x.example',
      'postern.yaml:1:1: http.origins: expected a list of origins as JSON, got https://x.example',
    ],
    ...[
      'https://a.example',
      'a.example/',
      'a.example:0',
      'a.example:65536',
      '*.example',
      'user@a.example',
      '::1',
      '1.2.3.256',
    ].map((host): [string, string] => [
      `issuers.allowed-hosts: ["${host}"]`,
      `postern.yaml:1:25: issuers.allowed-hosts[0]: expected host or host:port, IPv6 in brackets, got ${host}`,
    ]),
    [
      'issuers.max-staleness: 59m',
      'postern.yaml:1:1: issuers.max-staleness: expected a duration of at least 1h, such as 24h, got 59m',
    ],
    ['bootstrap.email: nobody', 'postern.yaml:1:1: bootstrap.email: expected an e-mail address, got nobody'],
    [
      'bootstrap.email: jürgen@example.com',
      'postern.yaml:1:1: bootstrap.email: expected an e-mail address, got "jürgen@example.com"',
    ],
    ['\nhtpp:\n  listen: x', 'postern.yaml:2:1: htpp: unknown key; did you mean http?'],
    ['http:\n  listne: x', 'postern.yaml:2:3: http.listne: unknown key; did you mean http.listen?'],
    ['something-else: 1', 'postern.yaml:1:1: something-else: unknown key'],
    ['"a secret as a key": 1', 'postern.yaml:1:1: (not a name): unknown key'],
    ['issuer: *nowhere', 'postern.yaml:1:1: issuer: this alias has no anchor'],
    ['issuer: a\nissuer: b', 'postern.yaml:2:1: this key appears twice in the same map'],
    ['http: {listen: "a:1"}\nhttp.listen: a:2', 'postern.yaml:2:1: http.listen: set twice: also in line 1'],
    [
      'secret-key: !env POSTERN_KEY_OF_AT_LEAST_32_CHARACTERS',
      'postern.yaml:1:13: not valid YAML here (TAG_RESOLVE_FAILED)',
    ],
    [
      'ldap.group-role-mapping: !!omap [{ "cn=a,dc=x": developer }]',
      'postern.yaml:1:26: not valid YAML here (TAG_RESOLVE_FAILED)',
    ],
    ...['postgresql://u:p@h:99999/d', 'postgresql://u:p@[::1/d', 'mysql://u:p@h/d'].map((url): [string, string] => [
      `database.url: "${url}"`,
      'postern.yaml:1:1: database.url: expected postgresql://user:password@host:port/database',
    ]),
    ['- a\n- b', 'postern.yaml:1:1: expected a map of settings'],
    ['just words', 'postern.yaml:1:1: expected a map of settings'],
    ['a: [', 'postern.yaml:1:5: not valid YAML here (BAD_INDENT)'],
    ['a: 1\n---\nb: 2', 'postern.yaml:2:1: not valid YAML here (MULTIPLE_DOCS)'],
    [
      'grpc.listen: 127.0.0.1:8080',
      'postern.yaml:1:1: grpc.listen: expected an address that no other listener uses, got the address of http.listen',
    ],
    ...['59s', '901s', '60500ms', '16m', '0'].map((ttl): [string, string] => [
      `upstream-token.ttl: ${ttl}`,
      `postern.yaml:1:1: upstream-token.ttl: expected a duration from 60s to 900s in whole seconds, such as 300s or 5m, got ${ttl}`,
    ]),
    [
      'upstream-token.header: x-token',
      'postern.yaml:1:1: upstream-token.header: expected one of x-postern-token, authorization, got x-token',
    ],
    [
      'upstream-token.claims: [roles, email]',
      'postern.yaml:1:32: upstream-token.claims[1]: expected one of roles, scope, client_id, act, got email',
    ],
    [
      'upstream-token.ttl: 60s',
      'postern.yaml:1:1: upstream-token.ttl: requires upstream-token.audience, the name of the platform that verifies the token',
    ],
    [
      'upstream-token.audience: platform',
      'postern.yaml:1:1: upstream-token.audience: expected another value than audience: a platform must not accept access tokens',
    ],
  ])('%j', (yaml, problem) => {
    expect(problemsOf(load(yaml))).toContain(problem);
  });

  it.each([
    'postgresql://u:p@h',
    'postgres://u@[::1]:5432/d',
    'postgresql://u@/d?host=%2Frun%2Fpostgresql',
    'postgresql:///d',
  ])('database.url may be %s', (url) => {
    expect(problemsOf(load(`database.url: "${url}"\nsecret-key: ${'k'.repeat(32)}`))).toEqual([]);
  });

  it('each once, and nothing seems to be missing from a file that is not YAML', () => {
    expect(problemsOf(load('issuer: a\nissuer: b'))).toEqual([
      'postern.yaml:2:1: this key appears twice in the same map',
    ]);
    const broken = problemsOf(load('secret-key: a\na: [', { POSTERN_DATABASE_URL: 'postgresql://a@b/c' }));
    expect(broken).toEqual([expect.stringMatching(/^postern\.yaml:2:\d+: not valid YAML here \(/)]);
  });

  it('all at once, not one after the other', () => {
    const problems = problemsOf(
      load('workers: x\nissuer: ""\nunknown: 1\ngrpc.listen: y', { POSTERN_CACHE_CREDENTIALS: 'z' }),
    );
    expect(problems).toHaveLength(5);
  });

  it('by its variable when it came from the environment', () => {
    expect(problemsOf(load('grpc.listen: a:1', { POSTERN_GRPC_LISTEN: '99999' }))).toEqual([
      'POSTERN_GRPC_LISTEN: expected host:port or unix:/path, got 99999',
    ]);
    expect(problemsOf(loadConfig({ env: { POSTERN_GRPC_LISTN: 'x', POSTERN_X: '' } }))).toEqual([
      'POSTERN_GRPC_LISTN: unknown variable; did you mean POSTERN_GRPC_LISTEN?',
      'POSTERN_X: unknown variable',
    ]);
    expect(problemsOf(loadConfig({ env: { POSTERN_WORKERS_FILE: '/x', POSTERN_PORT: '8080' } }))).toHaveLength(2);
  });

  it.each([
    [
      'POSTERN_ROUTES',
      [
        { method: 'GET', path: '/a', permission: 'a:b' },
        { method: 'GET', path: '/b', permission: 'a:b', public: true },
      ],
      '[1].public: unknown member of a route',
    ],
    [
      'POSTERN_HTTP_TRUSTED_PROXIES',
      ['10.0.0.0/8', '10.0.0.1/8'],
      '[1]: expected an IP address or a CIDR block without host bits, got 10.0.0.1/8',
    ],
    [
      'POSTERN_LDAP',
      [{ name: 'a' }, { name: 'b', timeout: '9' }],
      '[1].timeout: expected a duration from 100ms to 60s',
    ],
  ])('in the list of %s by its number, counted from 0 as in a file', (name, list, problem) => {
    expect(problemsOf(loadConfig({ env: { [name]: JSON.stringify(list) } }))).toEqual([`${name}${problem}`]);
  });

  it('once when a secret that other settings require is in a file that cannot be read', () => {
    const needed = 'ldap: {enabled: true, url: "ldaps://ldap.example", base-dn: "dc=x", bind-dn: "cn=p,dc=x"';
    const missing = ': expected a readable file of at most 64 KiB in UTF-8';
    expect(problemsOf(load(`${needed}, bind-password-file: /no/such/file}\n`))).toEqual([
      `postern.yaml:1:91: ldap.bind-password-file${missing}`,
    ]);
    const env = { POSTERN_LDAP_BIND_PASSWORD_FILE: '/no/such/file' };
    expect(problemsOf(load(`${needed}}\n`, env))).toEqual([`POSTERN_LDAP_BIND_PASSWORD_FILE${missing}`]);
    expect(problemsOf(load(`${needed}}\n`))).toEqual(['ldap.bind-password: required with ldap.bind-dn']);
  });

  it('in one sentence when the file itself is the problem', () => {
    withDirectory((directory) => {
      const file = join(directory, 'postern.yaml');
      expect(problemsOf(loadConfig({ file: configFile(file), env: {} }))).toEqual([
        'postern.yaml: the file does not exist',
      ]);
      writeFileSync(file, Buffer.from('http.listen: \xe9', 'latin1'));
      expect(problemsOf(loadConfig({ file: configFile(file), env: {} }))).toEqual([
        'postern.yaml: expected UTF-8 text',
      ]);
      rmSync(file);
      mkdirSync(file);
      expect(problemsOf(loadConfig({ file: configFile(file), env: {} }))).toEqual([
        'postern.yaml: the file cannot be read (EISDIR)',
      ]);
    });
    expect(problemsOf(load(`# ${'x'.repeat(1_048_576)}`))).toEqual([
      'postern.yaml: expected a file of at most 1 MiB, got 1048578 bytes',
    ]);
  });
});

describe('a wrong route is named with its line', () => {
  const routes = (line: string): readonly string[] =>
    problemsOf(load(`routes:\n  - {method: GET, path: /v1/a, permission: a:read}\n  - ${line}\n`));

  it.each([
    ['{method: GET, path: /v1/b}', 'postern.yaml:3:5: routes[1]: permission is missing'],
    [
      '{method: GET, path: /v1/b, permission: b:read, public: true}',
      'postern.yaml:3:60: routes[1].public: unknown member of a route',
    ],
    [
      '{method: GET, path: /v1/b, permission: b:read, model: query}',
      'postern.yaml:3:59: routes[1].model: expected path, body or unknown',
    ],
    [
      '{method: GET, path: /v1/b, permission: b:read, tokens: 1}',
      'postern.yaml:3:60: routes[1].tokens: expected true or false',
    ],
    ['[GET, /v1/b]', 'postern.yaml:3:5: routes[1]: expected a map with method, path and permission, got a list'],
  ])('%s', (line, problem) => {
    expect(routes(line)).toEqual([problem]);
  });

  it.each([
    '{method: get, path: /v1/b, permission: b:read}',
    '{method: GET, path: v1/b, permission: b:read}',
    '{method: GET, path: /v1/b, permission: "b:*"}',
    '{method: GET, path: /v1/b, permission: b:read, model: path}',
    '{method: GET, path: /v1/a, permission: b:read}',
    '{method: POST, path: "/v1/rag/collections/{other}/query", permission: b:read}',
  ])('also if only the route table detects the error: %s', (line) => {
    const [problem, ...more] = routes(line);
    expect(problem).toMatch(/^postern\.yaml:3:5: routes\[1\]: ./);
    expect(more).toEqual([]);
  });
});

it('a server that does not migrate needs a database that another program can migrate', () => {
  expect(problemsOf(load('database.migrate: false'))).toEqual([
    'postern.yaml:1:1: database.migrate: false requires database.url: only the server itself can migrate its embedded database',
  ]);
  expect(problemsOf(load(`database: {migrate: false, url: postgresql://db/x}\nsecret-key: ${'k'.repeat(32)}`))).toEqual(
    [],
  );
});

describe('secrets', () => {
  const SECRET_PATHS = ALL_SETTINGS.filter((key) => key.secret).map((key) => key.path);

  it('are required where sessions must survive: secret-key with a remote database', () => {
    expect(problemsOf(load('database.url: postgresql://db/x'))).toEqual([
      'secret-key: required with database.url: at least 32 characters, and the same value on every server of this database',
    ]);
  });

  it.each(SECRET_PATHS)('are never quoted, however wrong: %s', (path) => {
    const hidden = 'hunter2';
    for (const problems of [
      problemsOf(load(`${path}: ${hidden}`)),
      problemsOf(load(`${path}: "${hidden}`)),
      problemsOf(load(`${path}: [${hidden}]`)),
      problemsOf(load(`${path}: ${hidden}\n${path}: ${hidden}`)),
      problemsOf(load(`${path}: *${hidden}`)),
      problemsOf(loadConfig({ env: { [envName(path)]: hidden } })),
    ]) {
      expect(problems.length).toBeGreaterThan(0);
      expect(problems.join('\n')).not.toContain(hidden);
    }
  });

  it('are not quoted from a file that is not YAML either', () => {
    const hidden = 'hunter2hunter2hunter2hunter2hunter2';
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('"', "'", '{', '[', ':', ' ', '\n', '-', '*', '&', '!', '|', '>', '%') }),
        (noise) => {
          const problems = problemsOf(load(`secret-key: ${noise}${hidden}${noise}\n`));
          expect(problems.join('\n')).not.toContain(hidden);
        },
      ),
    );
  });

  it('in a file that is too large or has a NUL are refused', () => {
    withDirectory((directory) => {
      const file = join(directory, 'secret');
      writeFileSync(file, 'x'.repeat(65_537));
      expect(problemsOf(loadConfig({ env: { POSTERN_SECRET_KEY_FILE: file } }))).toHaveLength(1);
      writeFileSync(file, `${'x'.repeat(40)}\0`);
      expect(problemsOf(loadConfig({ env: { POSTERN_SECRET_KEY_FILE: file } }))).toEqual([
        'POSTERN_SECRET_KEY_FILE: expected at least 32 characters',
      ]);
    });
  });
});
