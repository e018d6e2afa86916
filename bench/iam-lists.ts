/** The lists that are measured: each filter alone, combinations, and what is unlucky about them. */

export interface ListCase {
  readonly name: string;
  readonly path: string;
  /** By a platform administrator over all tenants; else in the big tenant by its administrator. */
  readonly everywhere: boolean;
}

const DAY_MS = 86_400_000;
const inDays = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString();

const USER_FILTERS: readonly (readonly [name: string, query: string])[] = [
  ['all', ''],
  ['a page of 200', 'limit=200'],
  ['by name', 'sort=name'],
  ['by last login', 'sort=-last_login_at'],
  ['role of the last 5 in 100, by name', 'role=newcomer&sort=name'],
  ['status=deactivated (3 in 100)', 'status=deactivated'],
  ['role that all hold', 'role=developer'],
  ['role that 1 in 100 holds', 'role=auditor'],
  ['role of the last 5 in 100', 'role=newcomer'],
  ['role of the last, deactivated', 'role=newcomer&status=deactivated'],
  ['role that twenty hold', 'role=fire-warden'],
  ['role without a holder', 'role=ml-engineer'],
  ['role that is none', 'role=no-such-role&status=active'],
  ['email', 'email=nobody@example.com'],
  ['q that all have', 'q=example.com'],
  ['q of one letter', 'q=e'],
  ['q that 1 in 8 has', 'q=engineering'],
  ['q that 1 in 50 has', 'q=smith'],
  ['q that 1 in 250 has', 'q=123'],
  ['q that 1 in 1300 has', 'q=ada+smith'],
  ['q that ten have', 'q=zbigniew'],
  ['q without a match', 'q=no+such+text'],
  ['q of two letters without a match', 'q=qz'],
  ['q and role (1 in 50, 1 in 100)', 'q=smith&role=auditor'],
  ['q and role (1 in 8, the last)', 'q=engineering&role=newcomer'],
  ['q and role that never meet', 'q=zbigniew&role=auditor'],
  ['q and status (1 in 50, 3 in 100)', 'q=smith&status=deactivated'],
  ['q, role and status', 'q=research&role=analyst&status=deactivated'],
];

const KEY_FILTERS: readonly (readonly [name: string, query: string])[] = [
  ['all', ''],
  ['a page of 200, active', 'limit=200&status=active'],
  ['by name', 'sort=name'],
  ['by last use', 'sort=-last_used_at'],
  ['by expiry', 'sort=expires_at'],
  ['unused, by last use', 'unused_days=30&sort=last_used_at'],
  ['without expiry', 'without_expiry=true'],
  ['status=active', 'status=active'],
  ['status=expired', 'status=expired'],
  ['status=revoked', 'status=revoked'],
  ['expiring within a week', `status=active&expires_before=${inDays(7)}`],
  ['expires_before next year', `expires_before=${inDays(370)}`],
  ['expires_before, and none does', `status=active&expires_before=${inDays(-1)}`],
  ['revoked, expired last year', `status=revoked&expires_before=${inDays(-360)}`],
  ['user_id', 'user_id=usr_0000000000000000000000000a'],
  ['user_id and status', 'user_id=usr_0000000000000000000000000a&status=expired'],
  ['user_id without a key', 'user_id=usr_zzzzzzzzzzzzzzzzzzzzzzzzzz'],
];

const OTHERS: readonly (readonly [name: string, path: string])[] = [
  ['roles', '/v1/iam/roles?'],
  ['policies', '/v1/iam/policies?'],
];

function cases(path: string, what: string, filters: readonly (readonly [string, string])[]): readonly ListCase[] {
  return [false, true].flatMap((everywhere) =>
    filters.map(([name, query]) => ({
      name: `${what}${everywhere ? ' of all tenants' : ''}: ${name}`,
      path: `${path}?${[...(everywhere ? ['tenant_id=*'] : []), query].filter((part) => part !== '').join('&')}`,
      everywhere,
    })),
  );
}

export const LISTS: readonly ListCase[] = [
  ...cases('/v1/iam/users', 'users', USER_FILTERS),
  ...cases('/v1/iam/api-keys', 'keys', KEY_FILTERS),
  ...OTHERS.flatMap(([name, path]) => [
    { name, path, everywhere: false },
    { name: `${name} of all tenants`, path: `${path}tenant_id=*`, everywhere: true },
  ]),
  { name: 'policies of a role', path: '/v1/iam/roles/developer/policies', everywhere: false },
  { name: 'tenants', path: '/v1/iam/tenants', everywhere: true },
];
