/**
 * Which module may import which. Imports point one way, from the listeners to the shared vocabulary, so that the
 * decision can be read, tested and trusted without the rest.
 */

export interface SourceFile {
  /** From the project's folder, with slashes: `src/credential-cache/credential-cache.ts`. */
  readonly path: string;
  readonly text: string;
}

export interface Violation {
  readonly file: string;
  readonly line: number;
  readonly advice: string;
}

interface Module {
  /** Modules that it may import, beside itself. */
  readonly from: readonly string[];
  /** Modules whose `ports.ts` it may import types from, to implement them. */
  readonly ports?: readonly string[];
  /** True if it may use the language only: no packages, nothing of Node. */
  readonly pure?: true;
}

const MIDDLE = ['identity', 'credential-cache', 'store', 'directory', 'metering', 'outbound'];
/** What a check must not use: it never waits for another server. */
const NOT_IN_CHECKS: ReadonlySet<string> = new Set(['store', 'outbound']);
const BASE = ['concurrency', 'domain', 'decision', 'telemetry'];
const middle = (own: string): Module => ({ from: BASE, ports: MIDDLE.filter((module) => module !== own) });

const MODULES: Readonly<Record<string, Module>> = {
  domain: { from: [], pure: true },
  decision: { from: ['domain'], pure: true },
  concurrency: { from: [], pure: true },
  telemetry: { from: ['concurrency', 'domain', 'decision'] },
  config: { from: ['domain', 'decision', 'identity', 'directory'] },
  demo: { from: [] },
  identity: middle('identity'),
  'credential-cache': middle('credential-cache'),
  store: middle('store'),
  directory: middle('directory'),
  metering: middle('metering'),
  outbound: middle('outbound'),
  // What every management request passes: the caller, the frame of a change, lists, the parts of schemas.
  'iam/caller': { from: [...BASE, ...MIDDLE] },
  http: { from: [...BASE, ...MIDDLE, 'iam/caller'] },
  iam: { from: [...BASE, ...MIDDLE, 'iam/caller', 'http'] },
  extauthz: { from: [...BASE, ...MIDDLE.filter((module) => !NOT_IN_CHECKS.has(module))] },
  server: { from: [...BASE, ...MIDDLE, 'config', 'iam/caller', 'iam', 'extauthz', 'http'] },
  cli: { from: [...BASE, ...MIDDLE, 'config', 'iam/caller', 'iam', 'extauthz', 'http', 'server', 'demo'] },
  main: { from: ['cli'] },
  // Not of the server: programs and browsers take it as it is.
  client: { from: [], pure: true },
  // Not of the server either: it works by the client alone.
  console: { from: ['client'] },
};

/** Packages that one module alone knows. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  knex: ['store'],
  pg: ['store'],
  fastify: ['http', 'iam'],
  jose: ['identity'],
  'openid-client': ['iam'],
  '@node-rs/argon2': ['identity'],
  ldapts: ['directory'],
  pino: ['telemetry'],
  'prom-client': ['telemetry'],
  // An import of it by name reads all its members, and one of them loads Node's fetch: 40 ms of a process's start.
  // Processes of a server take it from `process.getBuiltinModule`.
  'node:http': ['cli', 'demo'],
};

const TRANSACTION = 'src/store/transaction.ts';

/**
 * Files of iam and http that may begin a transaction. A caller's change gets its transaction from `change` or
 * `asCaller`, which read inside it what the caller may do. The others have no caller: a login, a refresh, a token exchange, a one-time
 * token, the token of an issuer, the command line.
 */
const BEGINS_TRANSACTIONS: ReadonlySet<string> = new Set([
  'src/iam/change/change.ts',
  'src/iam/caller/hold-caller.ts',
  'src/iam/users/admit-issuer-user.ts',
  'src/iam/users/bootstrap.ts',
  'src/iam/sso/login.ts',
  'src/iam/sso/logout.ts',
  'src/iam/setup/apply.ts',
  'src/iam/auth/change-password.ts',
  'src/iam/auth/directory-login.ts',
  'src/iam/auth/directory-refresh.ts',
  'src/iam/auth/exchange.ts',
  'src/iam/auth/lock.ts',
  'src/iam/auth/login.ts',
  'src/iam/auth/logout.ts',
  'src/iam/auth/refresh.ts',
  'src/iam/auth/upkeep.ts',
  'src/iam/directory/lookups.ts',
  'src/iam/webhooks/announcements.ts',
  'src/iam/webhooks/outbox.ts',
]);

export function checkImports(files: readonly SourceFile[]): Violation[] {
  return files.flatMap((file) =>
    importsOf(file.text).flatMap((found) => {
      const advice = adviceFor(file.path, found);
      return advice === undefined ? [] : [{ file: file.path, line: found.line, advice }];
    }),
  );
}

interface Import {
  /** Undefined for an import() of something computed. */
  readonly specifier: string | undefined;
  readonly typeOnly: boolean;
  readonly line: number;
}

const STATEMENT =
  /^[ \t]*(?:import|export)\b(?<type>\s+type\b)?(?:[^'";]*?\bfrom\b)?\s*(?<quote>['"])(?<specifier>[^'"\n]+)\k<quote>/gm;
const CALL = /\bimport\s*\(\s*(?:(?<quote>['"])(?<specifier>[^'"\n]+)\k<quote>)?/g;

function importsOf(text: string): Import[] {
  const code = withoutComments(text);
  return [STATEMENT, CALL].flatMap((pattern) =>
    [...code.matchAll(pattern)].map((match) => ({
      specifier: match.groups?.['specifier'],
      typeOnly: match.groups?.['type'] !== undefined,
      line: code.slice(0, match.index + match[0].length).split('\n').length,
    })),
  );
}

/** Blanks comments and keeps the lines; text in quotes is left as it is. */
function withoutComments(text: string): string {
  const token = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[\s\S]|[^`\\])*`/g;
  return text.replace(token, (found) => (found.startsWith('/') ? found.replace(/[^\n]/g, ' ') : found));
}

/** Directories of `iam` that are below `http`. */
const REQUEST_FRAME: ReadonlySet<string> = new Set(['caller', 'change', 'list', 'schema']);

/** Directories of `iam` that each hold one entity. */
const ENTITIES: ReadonlySet<string> = new Set(['api-keys', 'users', 'roles', 'policies', 'tenants', 'sessions']);

/** Of an entity, what others may use: its definition, its statements, and what is made to be shared. */
const DEFINITION = /\/(?:entity|queries|[a-z-]+-queries)\.ts$/;
const ROUTES = /\/(?:routes|[a-z-]+-routes)\.ts$/;

/** Files of an entity that others use beside its definition. */
const SHARED: ReadonlySet<string> = new Set([
  'src/iam/issuers/claim-rules.ts',
  'src/iam/users/checks.ts',
  'src/iam/users/find.ts',
]);

/**
 * `src/credential-cache/ports.ts` -> `credential-cache`; `src/iam/change/change.ts` -> `iam/caller`; `src/server.ts` ->
 * `server`; `client/url.ts` -> `client`.
 */
function moduleOf(path: string): string {
  const [area = '', module = '', directory = ''] = path.split('/');
  if (area !== 'src') return area;
  if (module === 'iam' && REQUEST_FRAME.has(directory)) return 'iam/caller';
  return module.replace(/\.ts$/, '');
}

/** `src/iam/users/find.ts` -> `users`; undefined outside of `iam`. */
function entityOf(path: string): string | undefined {
  const [, module, directory] = path.split('/');
  return module === 'iam' ? directory : undefined;
}

/**
 * Inside `iam`: definition <- statements <- use cases <- routes, and of another entity its definition and statements
 * only.
 */
function adviceWithinIam(path: string, target: string): string | undefined {
  const [from, to] = [entityOf(path), entityOf(target)];
  if (from === undefined || to === undefined) return undefined;
  if (from === to) {
    const climbs = ROUTES.test(target) && !ROUTES.test(path);
    return climbs ? `${path} may not import ${target}: routes import use cases.` : undefined;
  }
  if (REQUEST_FRAME.has(to)) return undefined;
  if (DEFINITION.test(target) || SHARED.has(target)) return undefined;
  if (REQUEST_FRAME.has(from))
    return `${from} may use the definitions and statements of an entity only, not ${target}.`;
  if (DEFINITION.test(path)) return `statements may use other definitions and statements only, not ${target}.`;
  if (ENTITIES.has(from) && ENTITIES.has(to) && !ROUTES.test(path)) {
    return `${from} may use the definition and the statements of ${to} only, not ${target}.`;
  }
  return undefined;
}

function adviceFor(path: string, { specifier, typeOnly }: Import): string | undefined {
  const own = moduleOf(path);
  const module = MODULES[own];
  if (module === undefined)
    return `${own} is no module: put the file into one, or add it to scripts/lib/import-rules.ts.`;
  if (specifier === undefined) return 'import() of something computed cannot be checked: name the module.';
  if (own === 'console' && specifier.startsWith('node:'))
    return `the console runs in a browser, which has no ${specifier}.`;
  if (!specifier.startsWith('.')) return adviceForPackage(own, module, specifier, typeOnly);
  const target = resolve(path, specifier);
  if (own === 'client')
    return moduleOf(target) === own ? undefined : `client stands alone and may not import ${target}.`;
  if (own === 'console') {
    const allowed = target.startsWith('console/src/') || target === 'client/index.ts';
    return allowed ? undefined : `the console works by the client alone and may not import ${target}.`;
  }
  if (!target.startsWith('src/')) {
    return target === 'package.json' ? undefined : `${target} is outside src: move what is needed into a module.`;
  }
  if (
    target === TRANSACTION &&
    !typeOnly &&
    ['iam/caller', 'iam', 'http'].includes(own) &&
    !BEGINS_TRANSACTIONS.has(path)
  ) {
    return `${path} may not begin a transaction: a caller's change gets it from change() or asCaller(), with the caller that it holds.`;
  }
  const within = adviceWithinIam(path, target);
  if (within !== undefined) return within;
  const other = moduleOf(target);
  if (other === own || module.from.includes(other)) return undefined;
  if (own === 'iam/caller' && other === 'iam' && (DEFINITION.test(target) || SHARED.has(target))) return undefined;
  if (module.ports?.includes(other)) {
    if (/\/ports\.ts$/.test(target) && typeOnly) return undefined;
    return `${own} and ${other} do not import each other: declare what is needed as an interface in ports.ts of the one that needs it, and let server.ts join them.`;
  }
  return `${own} may not import ${other}, only ${module.from.join(', ') || 'its own files'}: move what both need to the left, or pass it in from server.ts.`;
}

function adviceForPackage(own: string, module: Module, specifier: string, typeOnly: boolean): string | undefined {
  if (module.pure)
    return `${own} is pure and uses no package and nothing of Node (here ${specifier}): pass the value in as an argument.`;
  const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
  const owners = PACKAGES[name];
  if (owners === undefined || owners.includes(own) || typeOnly) return undefined;
  return `${name} is known to ${owners.join(' and ')} alone: ask that module for what ${own} needs.`;
}

function resolve(from: string, specifier: string): string {
  const parts = from.split('/').slice(0, -1);
  for (const part of specifier.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '.') parts.push(part);
  }
  return parts.join('/');
}
