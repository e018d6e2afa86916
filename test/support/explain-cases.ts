/**
 * The decision cases asked of a running server, through `POST /v1/iam/explain` on its socket: to show that two servers
 * decide alike, for example one whose database was set up by hand and one whose database was set up from the other's
 * export.
 *
 * ```ts
 * const { world, cases, defaults } = loadCases();
 * await storeWorld(one.db.knex, world, new Date('2027-01-01T00:00:00Z'));                  // the first server's database
 * // … export from the first server, apply to the second: tenants, roles, policies and users, but no key, as those are secrets …
 * await storeKeys(other.db.knex, world, await usersOfWorld(caller(other), world), new Date('2027-01-01T00:00:00Z'));
 * expect(await askCases(caller(one), file)).toEqual(demanded(file));
 * expect(await askCases(caller(other), file)).toEqual(demanded(file));
 * ```
 */

import { parseId, type UserId } from '../../src/domain/ids.ts';
import { send } from './http.ts';
import { bodyOf, type CaseFile, type CaseWorld, type DecisionCase } from './world.ts';

/** A server and a platform administrator of it. */
export interface CaseCaller {
  /** `http://host:port` of the management API. */
  readonly url: string;
  /** An access token. */
  readonly token: string;
}

/** `200 allow` or `403 no_route`, by the name of the case. */
export type Verdicts = Readonly<Record<string, string>>;

/** All cases except those that depend on a header that an explanation does not have. */
export function explainable(cases: readonly DecisionCase[]): readonly DecisionCase[] {
  return cases.filter((one) => one.headers === undefined);
}

/** The expected outcomes of the cases. */
export function demanded({ cases }: Pick<CaseFile, 'cases'>): Verdicts {
  return Object.fromEntries(explainable(cases).map(({ name, expect }) => [name, `${expect.status} ${expect.code}`]));
}

/**
 * Returns the answers of a server to every case. It finds users by their email address (`<label>@example.com`) and keys
 * by their description (the label), because their ids differ.
 */
export async function askCases(caller: CaseCaller, file: CaseFile): Promise<Verdicts> {
  const { world, cases, defaults } = file;
  const subjects = new Map<string, string>([
    ...(await usersOfWorld(caller, world)),
    ...(await keysOfWorld(caller, world)),
  ]);
  const verdicts: Record<string, string> = {};
  for (const one of explainable(cases)) {
    const body = bodyOf(one);
    const asked = {
      ...whoAsks(one.as, caller, subjects),
      method: one.method,
      path: one.path,
      client_ip: one.ip ?? defaults.ip,
      time: one.as?.startsWith('expired:') ? longAfter(one.time ?? defaults.time) : (one.time ?? defaults.time),
      ...(one.tenant === undefined ? {} : { tenant_id: one.tenant }),
      ...(body === undefined ? {} : { body }),
      ...(one.content_type === undefined ? {} : { content_type: one.content_type }),
    };
    const { status, json } = await call(caller, 'POST', '/v1/iam/explain', asked);
    verdicts[one.name] = status === 200 ? `${json['status']} ${json['code']}` : `explain: ${status} ${json['code']}`;
  }
  return verdicts;
}

/** The ids of the world's users at a server, by label. */
export async function usersOfWorld(caller: CaseCaller, world: CaseWorld): Promise<ReadonlyMap<string, UserId>> {
  const found = new Map<string, UserId>();
  for (const { id, tenant_id } of world.users) {
    const query = `tenant_id=${tenant_id}&email=${encodeURIComponent(`${id}@example.com`)}`;
    const [user] = rowsOf(await call(caller, 'GET', `/v1/iam/users?${query}`));
    const userId = parseId('usr', String(user?.['id']));
    if (userId === undefined) throw new Error(`the server has no user ${id}@example.com in ${tenant_id}`);
    found.set(id, userId);
  }
  return found;
}

async function keysOfWorld(caller: CaseCaller, world: CaseWorld): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const tenant of new Set(world.api_keys.map((key) => key.tenant_id))) {
    const keys = rowsOf(await call(caller, 'GET', `/v1/iam/api-keys?tenant_id=${tenant}&limit=200`));
    for (const key of keys) found.set(String(key['description']), String(key['id']));
  }
  for (const { id } of world.api_keys) if (!found.has(id)) throw new Error(`the server has no key described as ${id}`);
  return found;
}

/** Past its time is a matter of the clock alone, so whose token it is does not count. */
function whoAsks(as: string | null, caller: CaseCaller, subjects: ReadonlyMap<string, string>): object {
  if (as === null) return {};
  if (as.startsWith('expired:')) return { credential: caller.token };
  if (as.startsWith('raw:')) return { credential: as.slice('raw:'.length) };
  if (as.startsWith('header:')) return { credential: as.slice('header:'.length).replace(/^Bearer /, '') };
  const subject = subjects.get(as);
  if (subject === undefined) throw new Error(`the world has no ${as}`);
  return { subject };
}

function longAfter(time: string): string {
  return new Date(Math.max(Date.parse(time), Date.now()) + 365 * 86_400_000).toISOString();
}

interface Reply {
  readonly status: number;
  readonly json: Readonly<Record<string, unknown>>;
}

async function call({ url, token }: CaseCaller, method: string, path: string, body?: object): Promise<Reply> {
  const headers = {
    authorization: `Bearer ${token}`,
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  };
  const answer = await send(url, {
    method,
    path,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, json: JSON.parse(answer.body) };
}

function rowsOf({ status, json }: Reply): readonly Readonly<Record<string, unknown>>[] {
  const { data } = json;
  if (!Array.isArray(data)) throw new Error(`no list: ${status} ${JSON.stringify(json)}`);
  return data;
}
