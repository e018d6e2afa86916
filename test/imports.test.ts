import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { sourceFiles } from '../scripts/imports.ts';
import { checkImports } from '../scripts/lib/import-rules.ts';

const ROOT = new URL('..', import.meta.url).pathname;

it('every import of the project points the allowed way', async () => {
  const files = await sourceFiles(ROOT);
  expect(files.length).toBeGreaterThan(10);
  expect(checkImports(files)).toEqual([]);
});

it.each([
  ['a gate', ['src/server/gate.ts'], ['ldapts']],
  ['the supervisor', ['src/cli/serve.ts', 'src/cli/supervisor.ts'], ['jose', 'lru-cache']],
])('%s loads no schemas, no validator and no HTTP framework', async (_, files, more) => {
  const imports = files.map((file) => `import('${ROOT}${file}')`).join(', ');
  const program = `
    const packages = new Set();
    require('node:module').registerHooks({
      resolve(specifier, context, next) {
        const found = next(specifier, context);
        packages.add(/node_modules.((?:@[^/]+.)?[^/]+)/.exec(found.url)?.[1]);
        return found;
      },
    });
    Promise.all([${imports}]).then(() => console.log(JSON.stringify([...packages])));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=commonjs', '--eval', program]);
  const packages: unknown = JSON.parse(stdout);
  expect(packages).toContain('pg');
  for (const name of ['typebox', 'ajv', 'fastify', '@node-rs/argon2', 'openid-client', 'yaml', ...more])
    expect(packages).not.toContain(name);
});

describe('a planted violation is found', () => {
  it.each([
    ['src/decision/x.ts', "import { y } from '../credential-cache/y.ts';", /decision may not import credential-cache/],
    ['src/domain/x.ts', "import { y } from '../decision/y.ts';", /domain may not import decision/],
    ['src/domain/x.ts', "import { readFile } from 'node:fs';", /domain is pure/],
    ['src/decision/x.ts', "import type { Logger } from 'pino';", /decision is pure/],
    [
      'src/credential-cache/x.ts',
      "import { y } from '../store/y.ts';",
      /credential-cache and store do not import each other/,
    ],
    ['src/store/x.ts', "import { CacheLoader } from '../credential-cache/ports.ts';", /ports\.ts/],
    [
      'src/store/x.ts',
      "import type { y } from '../credential-cache/credential-cache.ts';",
      /store and credential-cache do not import each other/,
    ],
    ['src/extauthz/x.ts', "import { y } from '../iam/y.ts';", /extauthz may not import iam/],
    ['src/extauthz/x.ts', "import type { y } from '../store/y.ts';", /extauthz may not import store/],
    ['src/extauthz/x.ts', "import { y } from '../outbound/fetch.ts';", /extauthz may not import outbound/],
    ['src/http/x.ts', "import { y } from '../extauthz/y.ts';", /http may not import extauthz/],
    ['src/http/x.ts', "import { y } from '../config/y.ts';", /http may not import config/],
    ['src/iam/x.ts', "import { y } from '../server.ts';", /iam may not import server/],
    ['src/server.ts', "import { y } from './cli/y.ts';", /server may not import cli/],
    ['src/server.ts', "import { y } from './demo/y.ts';", /server may not import demo/],
    ['src/iam/x.ts', "import knex from 'knex';", /knex is known to store alone/],
    ['src/extauthz/x.ts', "import { fastify } from 'fastify';", /fastify is known to http and iam alone/],
    ['src/http/x.ts', "import { createServer } from 'node:http';", /node:http is known to cli and demo alone/],
    ['src/oddments/x.ts', "import { y } from './y.ts';", /oddments is no module/],
    ['src/http/x.ts', "import { y } from '../../test/y.ts';", /outside src/],
    ['src/decision/x.ts', "export * from '../credential-cache/y.ts';", /decision may not import credential-cache/],
    ['src/decision/x.ts', "import '../credential-cache/y.ts';", /decision may not import credential-cache/],
    [
      'src/decision/x.ts',
      "import {\n  a,\n  b,\n} from '../credential-cache/y.ts';",
      /decision may not import credential-cache/,
    ],
    [
      'src/decision/x.ts',
      "const y = await import('../credential-cache/y.ts');",
      /decision may not import credential-cache/,
    ],
    ['src/decision/x.ts', 'const y = await import(name);', /cannot be checked/],
    ['client/x.ts', "import type { ErrorCode } from '../src/domain/errors.ts';", /client stands alone/],
    ['client/x.ts', "import { readFile } from 'node:fs';", /client is pure/],
    ['console/src/x.tsx', "import { decide } from '../../src/decision/decide.ts';", /works by the client alone/],
    ['console/src/x.tsx', "import { call } from '../../client/call.ts';", /works by the client alone/],
    ['console/src/x.tsx', "import { readFile } from 'node:fs';", /runs in a browser/],
    ['client/x.ts', "import { request } from 'undici';", /client is pure/],
    ['src/iam/users/x.ts', "import { transaction } from '../../store/transaction.ts';", /may not begin a transaction/],
    ['src/http/x.ts', "import { transaction } from '../store/transaction.ts';", /may not begin a transaction/],
    ['src/http/x.ts', "import { createClient } from '../../client/index.ts';", /outside src/],
    ['src/http/x.ts', "import { y } from '../iam/users/update.ts';", /http may not import iam/],
    ['src/store/x.ts', "import { y } from '../iam/users/queries.ts';", /store may not import iam/],
    ['src/iam/change/x.ts', "import { y } from '../users/update.ts';", /definitions and statements of an entity only/],
    ['src/iam/change/x.ts', "import { y } from '../../http/endpoint.ts';", /iam.caller may not import http/],
    [
      'src/iam/users/x.ts',
      "import { y } from '../roles/update.ts';",
      /users may use the definition and the statements of roles/,
    ],
    ['src/iam/users/queries.ts', "import { y } from '../auth/login.ts';", /statements may use/],
    ['src/iam/users/update.ts', "import { y } from './routes.ts';", /routes import use cases/],
  ])('%s: %s', (path, text, advice) => {
    const violations = checkImports([{ path, text }]);
    expect(violations).toHaveLength(1);
    expect(violations[0]?.advice).toMatch(advice);
  });

  it('and named with its line', () => {
    const text =
      "/** import { a } from '../credential-cache/a.ts'; */\n\nimport { b } from '../credential-cache/b.ts';\n";
    expect(checkImports([{ path: 'src/decision/x.ts', text }])).toMatchObject([{ file: 'src/decision/x.ts', line: 3 }]);
  });
});

describe('what is allowed stays allowed', () => {
  it.each([
    ['src/credential-cache/x.ts', "import { decide } from '../decision/decide.ts';"],
    ['src/store/x.ts', "import type { CacheLoader } from '../credential-cache/ports.ts';"],
    ['src/store/x.ts', "import knex from 'knex';"],
    ['src/iam/users/x.ts', "import { y } from '../roles/queries.ts';"],
    ['src/iam/caller/x.ts', "import { y } from '../roles/queries.ts';"],
    ['src/iam/users/routes.ts', "import { y } from '../../http/endpoint.ts';"],
    ['src/http/x.ts', "import type { Caller } from '../iam/caller/caller.ts';"],
    ['src/iam/users/x.ts', "import type { Transaction } from '../../store/transaction.ts';"],
    ['src/http/x.ts', "import type { Logger } from 'pino';"],
    ['src/decision/x.ts', "// import { y } from '../credential-cache/y.ts';"],
    ['src/decision/x.ts', "const text = '// '; import { y } from '../domain/ids.ts';"],
    ['src/cli/x.ts', "import { startUpstream } from '../demo/upstream.ts';"],
    ['src/server.ts', "import { createCheckHandler } from './extauthz/check-handler.ts';"],
    ['client/x.ts', "import { y } from './y.ts';"],
    ['console/src/x.tsx', "import { createClient } from '../../client/index.ts';"],
    ['console/src/x.tsx', "import { useState } from 'react';"],
  ])('%s: %s', (path, text) => {
    expect(checkImports([{ path, text }])).toEqual([]);
  });
});
