/**
 * Which room may import which. Imports point one way, from the edges to the words everyone uses, so that what decides can be read,
 * tested and trusted without what surrounds it.
 */

export interface SourceFile {
  /** From the project's folder, with slashes: `src/live/live.ts`. */
  readonly path: string;
  readonly text: string;
}

export interface Violation {
  readonly file: string;
  readonly line: number;
  readonly advice: string;
}

interface Room {
  /** Rooms it may import, beside itself. */
  readonly from: readonly string[];
  /** Rooms whose `ports.ts` it may import types from, to implement what they ask for. */
  readonly ports?: readonly string[];
  /** True where nothing but the language may be used: no packages, nothing of Node. */
  readonly pure?: true;
}

const MIDDLE = ['identity', 'live', 'store', 'directory', 'metering'];
const BASE = ['domain', 'decision', 'telemetry'];
const middle = (own: string): Room => ({ from: BASE, ports: MIDDLE.filter((room) => room !== own) });

const ROOMS: Readonly<Record<string, Room>> = {
  domain: { from: [], pure: true },
  decision: { from: ['domain'], pure: true },
  telemetry: { from: ['domain', 'decision'] },
  config: { from: ['domain', 'decision', 'identity', 'directory'] },
  demo: { from: [] },
  identity: middle('identity'),
  live: middle('live'),
  store: middle('store'),
  directory: middle('directory'),
  metering: middle('metering'),
  admin: { from: [...BASE, ...MIDDLE] },
  extauthz: { from: [...BASE, ...MIDDLE.filter((room) => room !== 'store')] },
  http: { from: [...BASE, ...MIDDLE, 'admin'] },
  server: { from: [...BASE, ...MIDDLE, 'config', 'admin', 'extauthz', 'http'] },
  cli: { from: [...BASE, ...MIDDLE, 'config', 'admin', 'extauthz', 'http', 'server', 'demo'] },
  main: { from: ['cli'] },
  // Not of the server: programs and browsers take it as it is.
  client: { from: [], pure: true },
  // Not of the server either: it works by the client alone.
  console: { from: ['client'] },
};

/** Packages that one room alone knows. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  knex: ['store'],
  pg: ['store'],
  fastify: ['http'],
  jose: ['identity'],
  '@node-rs/argon2': ['identity'],
  ldapts: ['directory'],
  pino: ['telemetry'],
  'prom-client': ['telemetry'],
};

const TRANSACTION = 'src/store/transaction.ts';

/**
 * Files of admin and http that may begin a transaction. A caller's change gets its transaction from `change` or `asCaller`, which read inside
 * it what the caller may do. The others have no caller: a login, a refresh, a one-time token, the command line.
 */
const BEGINS_TRANSACTIONS: ReadonlySet<string> = new Set([
  'src/admin/change.ts',
  'src/admin/hold-caller.ts',
  'src/admin/bootstrap.ts',
  'src/admin/setup/apply.ts',
  'src/admin/auth/change-password.ts',
  'src/admin/auth/directory-login.ts',
  'src/admin/auth/directory-refresh.ts',
  'src/admin/auth/login.ts',
  'src/admin/auth/logout.ts',
  'src/admin/auth/refresh.ts',
  'src/admin/auth/upkeep.ts',
  'src/admin/directory/lookups.ts',
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

/** `src/live/live.ts` -> `live`; `src/server.ts` -> `server`; `client/url.ts` -> `client`. */
function roomOf(path: string): string {
  const [area = '', room = ''] = path.split('/');
  return area === 'src' ? room.replace(/\.ts$/, '') : area;
}

function adviceFor(path: string, { specifier, typeOnly }: Import): string | undefined {
  const own = roomOf(path);
  const room = ROOMS[own];
  if (room === undefined) return `${own} is no room: put the file into one, or add the room to scripts/lib/import-rules.ts.`;
  if (specifier === undefined) return 'import() of something computed cannot be checked: name the module.';
  if (own === 'console' && specifier.startsWith('node:')) return `the console runs in a browser, which has no ${specifier}.`;
  if (!specifier.startsWith('.')) return adviceForPackage(own, room, specifier, typeOnly);
  const target = resolve(path, specifier);
  if (own === 'client') return roomOf(target) === own ? undefined : `client stands alone and may not import ${target}.`;
  if (own === 'console') {
    const allowed = target.startsWith('console/src/') || target === 'client/index.ts';
    return allowed ? undefined : `the console works by the client alone and may not import ${target}.`;
  }
  if (!target.startsWith('src/')) {
    return target === 'package.json' ? undefined : `${target} is outside src: move what is needed into a room.`;
  }
  if (target === TRANSACTION && !typeOnly && ['admin', 'http'].includes(own) && !BEGINS_TRANSACTIONS.has(path)) {
    return `${path} may not begin a transaction: a caller's change gets it from change() or asCaller(), with the caller that it holds.`;
  }
  const other = roomOf(target);
  if (other === own || room.from.includes(other)) return undefined;
  if (room.ports?.includes(other)) {
    if (/\/ports\.ts$/.test(target) && typeOnly) return undefined;
    return `${own} and ${other} do not import each other: declare what is needed as an interface in ports.ts of the one that needs it, and let server.ts join them.`;
  }
  return `${own} may not import ${other}, only ${room.from.join(', ') || 'its own files'}: move what both need to the left, or pass it in from server.ts.`;
}

function adviceForPackage(own: string, room: Room, specifier: string, typeOnly: boolean): string | undefined {
  if (room.pure)
    return `${own} is pure and uses no package and nothing of Node (here ${specifier}): pass the value in as an argument.`;
  const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
  const owners = PACKAGES[name];
  if (owners === undefined || owners.includes(own) || typeOnly) return undefined;
  return `${name} is known to ${owners.join(' and ')} alone: ask that room for what ${own} needs.`;
}

function resolve(from: string, specifier: string): string {
  const parts = from.split('/').slice(0, -1);
  for (const part of specifier.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '.') parts.push(part);
  }
  return parts.join('/');
}
