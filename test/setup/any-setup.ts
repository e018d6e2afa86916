/** Random setups, and their meaning. */

import fc from 'fast-check';
import { DAY_NAMES } from '../../src/domain/records.ts';
import { BUILTIN_ROLES } from '../../src/domain/roles.ts';
import { withoutHidden } from '../../src/domain/visible-text.ts';
import type {
  BudgetDocument,
  IssuerDocument,
  PolicyDocument,
  RoleDocument,
  SetupDocument,
  TenantDocument,
  UserDocument,
  WebhookDocument,
} from '../../src/iam/setup/document.ts';
import { anyCharacter } from '../support/properties.ts';

/** Text as people and machines write it, also what YAML reads as something else, and what breaks lines. */
export const words = fc
  .oneof(
    fc.constantFrom(
      'no',
      'null',
      '~',
      '12',
      '1e3',
      '22:00',
      '- a',
      '# no comment',
      'a: b',
      '"',
      "it's",
      '*x',
      '&x',
      '!x',
      '%x',
      '\\n',
    ),
    fc.string({ unit: anyCharacter, minLength: 1, maxLength: 30 }),
    fc.string({
      unit: fc.constantFrom(' ', 'a', '\n', '\t', '\r', '\u0085', '\u2028', '\ufeff', '\u001b', ':', '#'),
      minLength: 1,
      maxLength: 12,
    }),
  )
  .map((text) => withoutHidden(text.replaceAll('\0', '')));
const title = words.filter((text) => /\S/.test(text));
const description = fc.option(words, { nil: undefined });
const name = fc
  .stringMatching(/^[a-z][a-z0-9_-]{0,8}$/)
  .filter((text) => !BUILTIN_ROLES.some((role) => role.name === text));
const pattern = fc.constantFrom('*', 'chat:*', '*:read', 'rag:write', 'admin:users');
const glob = fc.constantFrom('*', 'phi-*', 'llama-3', 'a/b', 'ö', 'no');
const some = <T>(one: fc.Arbitrary<T>) => fc.array(one, { minLength: 1, maxLength: 3 });
const maybe = <T>(one: fc.Arbitrary<T>) => fc.option(one, { nil: undefined });
const metadata = fc.option(
  fc.dictionary(
    words.filter((key) => key !== ''),
    words,
    { maxKeys: 3 },
  ),
  { nil: undefined },
);
const limit = fc.constantFrom(0, 1, 5000, Number.MAX_SAFE_INTEGER, null, undefined);

/** Without the members that are undefined: in a file they are not there. */
function present<T>(one: fc.Arbitrary<object>): fc.Arbitrary<T> {
  return one.map((value) => JSON.parse(JSON.stringify(value)));
}

const role: fc.Arbitrary<RoleDocument> = present(
  fc.record({
    name,
    description,
    permissions: fc.array(pattern, { maxLength: 3 }),
    resource_constraints: maybe(
      fc.record({
        models: maybe(fc.array(glob, { maxLength: 3 })),
        collections: maybe(fc.array(glob, { maxLength: 2 })),
        agents: maybe(some(glob)),
      }),
    ),
  }),
);

const conditions = fc.record({
  ip_address: maybe(
    fc.constantFrom({ in: ['10.0.0.0/8', '2001:db8::/32'] }, { in: ['10.0.0.1'], not_in: ['192.0.2.0/24'] }),
  ),
  time: maybe(
    fc.constantFrom({ between: ['22:00', '06:00'] }, { not_between: ['08:00', '18:00'], between: ['00:00', '23:59'] }),
  ),
  day_of_week: maybe(some(fc.constantFrom(...DAY_NAMES)).map((days) => ({ not_in: days }))),
  weekly_hours: maybe(
    fc.constantFrom(
      { not_in: ['Mon-Fri 08:00-18:00'] },
      { not_in: ['Sun 22:00-24:00'], in: ['Fri-Mon 22:00-02:00', 'Wed 00:00-24:00'] },
    ),
  ),
  timezone: maybe(fc.constantFrom('Europe/Berlin', 'UTC')),
});

function policy(roles: readonly string[]): fc.Arbitrary<PolicyDocument> {
  const audience = fc.oneof(
    fc.constantFrom({}, { applies_to: 'everyone' as const }, { applies_to: 'roles' as const }),
    fc.subarray([...roles]).map((attached) => ({ attached_roles: attached })),
  );
  const rest = fc.record({
    name,
    description,
    effect: fc.constantFrom('allow' as const, 'deny' as const),
    actions: some(pattern),
    resources: some(fc.constantFrom('*', 'models/phi-*', 'collections/hr', 'agents/*')),
    conditions: maybe(conditions),
    mode: maybe(fc.constantFrom('enforce' as const, 'report' as const)),
    enabled: maybe(fc.boolean()),
  });
  return present(fc.tuple(rest, audience).map(([parts, audienceParts]) => ({ ...parts, ...audienceParts })));
}

const claimRules = fc.array(
  fc.record({
    claim: fc.constantFrom('hd', '/kubernetes.io/namespace', '/a~1b/0'),
    in: some(words.filter((text) => text !== '' && text.split('*').length < 9)),
  }),
  { maxLength: 2 },
);

function issuer(tenant: string, roles: readonly string[]): fc.Arbitrary<IssuerDocument> {
  const users = fc.record({
    subject_claim: maybe(fc.constantFrom('sub', 'oid')),
    email_claim: maybe(fc.constant('email')),
    create: maybe(fc.boolean()),
    roles: maybe(claimRules.chain((rules) => fc.tuple(...rules.map((rule) => mapped(rule, roles))))),
    default_roles: maybe(fc.subarray([...roles])),
  });
  const sso = fc.record({ client_id: fc.constant('console'), label: title, required_acr: maybe(fc.constant('mfa')) });
  const login = fc.oneof(fc.constant({}), fc.record({ users }), fc.record({ users, sso }));
  const rest = fc.record({
    name,
    audiences: fc.uniqueArray(
      words.filter((text) => text !== ''),
      { minLength: 1, maxLength: 2 },
    ),
    jwks_uri: fc.constantFrom('https://login.example/keys?p=1', null, undefined),
    algorithms: maybe(fc.subarray(['RS256', 'ES256', 'EdDSA', 'PS512'], { minLength: 1 })),
    token_types: fc.constantFrom(['JWT', ''], null, undefined),
    required_claims: maybe(claimRules),
    enabled: maybe(fc.boolean()),
    max_age_seconds: fc.constantFrom(60, null, undefined),
    leeway_seconds: fc.constantFrom(0, 5, null, undefined),
  });
  return present(
    fc
      .tuple(rest, login)
      .map(([parts, more]) => ({ ...parts, ...more, issuer: `https://${parts.name}.example/${tenant}` })),
  );
}

function mapped<R extends object>(rule: R, roles: readonly string[]) {
  return fc.subarray([...roles]).map((given) => ({ ...rule, roles: given }));
}

function user(tenant: string, roles: readonly string[]): fc.Arbitrary<UserDocument> {
  return present(
    fc.record({
      email: fc.stringMatching(/^[A-Za-z!#$%&'*+/=?^_`{|}~.-]{1,8}$/).map((local) => `${local}@${tenant}.test`),
      name: title,
      department: fc.option(words, { nil: null }),
      metadata,
      rate_limits: maybe(rateLimits),
      roles: maybe(fc.subarray([...roles])),
      status: maybe(fc.constantFrom('active' as const, 'deactivated' as const)),
    }),
  );
}

const rateLimits = fc.uniqueArray(
  fc.record(
    { models: fc.constantFrom(['*'], ['a', 'b-*'], ['c']), parallel: fc.nat(), tokens_per_minute: fc.nat() },
    { requiredKeys: ['models', 'parallel'] },
  ),
  { selector: ({ models }) => models.join(), minLength: 1, maxLength: 3 },
);

const webhook: fc.Arbitrary<WebhookDocument> = present(
  fc.record({
    url: fc.constantFrom('https://hooks.example/a', 'https://hooks.example/a?b=%2F', 'https://b.example:8443/'),
    events: fc.uniqueArray(fc.constantFrom('*', 'budget.*', 'key.revoked', 'audit.role.create'), {
      minLength: 1,
      maxLength: 3,
    }),
    description: fc.option(title, { nil: null }),
    enabled: maybe(fc.boolean()),
  }),
);

/** Without a scope of keys, because a file contains no keys. */
function budget(roles: readonly string[], emails: readonly string[]): fc.Arbitrary<BudgetDocument> {
  const scopes = [
    fc.constant({ tenant: true as const }),
    fc.subarray([...roles], { minLength: 1 }).map((names) => ({ roles: names })),
    fc.constant({ metadata: { team: 'a' } }),
    ...(emails.length === 0 ? [] : [fc.subarray([...emails], { minLength: 1 }).map((users) => ({ users }))]),
  ];
  const amount = fc.oneof(
    fc.record({ unit: fc.constant('money' as const), limit: fc.constantFrom('0', '12.5', '0.000000001') }),
    fc.record({ unit: fc.constantFrom('tokens' as const, 'requests' as const), limit: fc.constantFrom(0, 1, 1e12) }),
  );
  const rest = fc.record({
    name,
    period: fc.constantFrom('hour' as const, 'day' as const, 'week' as const, 'month' as const, 'total' as const),
    timezone: fc.constantFrom('Europe/Berlin', null, undefined),
    applies_to: fc.oneof(...scopes),
    per: maybe(fc.constantFrom('all' as const, 'key' as const, 'user' as const)),
    models: fc.oneof(fc.constantFrom(null, undefined), fc.uniqueArray(glob, { minLength: 1, maxLength: 3 })),
    action: maybe(fc.constantFrom('block' as const, 'report' as const)),
    alerts: fc.constantFrom([0.8, 1], [0.5], [], null, undefined),
    enabled: maybe(fc.boolean()),
  });
  return present(fc.tuple(rest, amount).map(([parts, { unit, limit }]) => ({ ...parts, unit, limit })));
}

const builtins = BUILTIN_ROLES.map((one) => one.name as string);
const unique = <T>(one: fc.Arbitrary<T>, by: (value: T) => string, maxLength: number) =>
  fc.uniqueArray(one, { selector: by, maxLength });

function tenant(id: string): fc.Arbitrary<TenantDocument> {
  return withoutBudgets(id).chain((document) => {
    const roles = [...builtins, ...(document.roles ?? []).map((one) => one.name)];
    const emails = (document.users ?? []).map(({ email }) => email.toLowerCase());
    return unique(budget(roles, emails), (one) => one.name, 2).map((budgets) => ({ ...document, budgets }));
  });
}

function withoutBudgets(id: string): fc.Arbitrary<TenantDocument> {
  return unique(role, (one) => one.name, 3).chain((roles) => {
    const names = [...builtins, ...roles.map((one) => one.name)];
    return present(
      fc.record({
        id: fc.constant(id),
        name: title,
        status: fc.constantFrom('active' as const, id === 'default' ? 'active' : 'suspended', undefined),
        settings: maybe(
          fc.record({
            default_model: maybe(title),
            max_tokens_per_request: limit,
            rate_limit_rpm: limit,
            timezone: fc.constantFrom('Europe/Berlin', null, undefined),
            allow_keys_without_expiry: fc.constantFrom(true, false, null, undefined),
            require_stream_usage: fc.constantFrom(true, false, null, undefined),
            rate_limits: maybe(rateLimits),
          }),
        ),
        quotas: maybe(
          fc.record({ monthly_tokens: limit, max_users: fc.constantFrom(50, null, undefined), max_collections: limit }),
        ),
        metadata,
        roles: fc.constant(roles),
        policies: unique(
          policy(names).map((one) => ({ ...one, name: `${one.name}-of-${id}` })),
          (one) => one.name,
          3,
        ),
        issuers: unique(issuer(id, names), (one) => one.name, 2),
        webhooks: unique(webhook, (one) => one.url, 2),
        users: unique(user(id, names), (one) => one.email.toLowerCase(), 4),
      }),
    );
  });
}

export const setup: fc.Arbitrary<SetupDocument> = fc
  .subarray(['acme', 'default', 'globex-1', '0'], { minLength: 1 })
  .chain((ids) =>
    fc.record({
      version: fc.constant(1 as const),
      global_policies: unique(policy(builtins), (one) => one.name, 3),
      tenants: fc.tuple(...ids.map(tenant)),
    }),
  );

/**
 * What is not written out in full, written out: an independent reading of what the members mean when they are absent.
 */
export function meaning(document: SetupDocument): unknown {
  const policyMeaning = (one: PolicyDocument) => {
    const attached = sorted(one.attached_roles);
    const audience = one.attached_roles === undefined ? (one.effect === 'deny' ? 'everyone' : 'roles') : 'roles';
    return {
      ...one,
      description: one.description ?? '',
      conditions: one.conditions ?? {},
      applies_to: one.applies_to ?? audience,
      attached_roles: attached,
      mode: one.mode ?? 'enforce',
      enabled: one.enabled ?? true,
    };
  };
  const issuerMeaning = (one: IssuerDocument) => ({
    ...{ kind: 'oidc', jwks_uri: null, jwks: null, ca: null, token_types: null, max_age_seconds: null, ...one },
    algorithms: one.algorithms ?? ['RS256', 'ES256', 'EdDSA'],
    required_claims: one.required_claims ?? [],
    enabled: one.enabled ?? true,
    leeway_seconds: one.leeway_seconds ?? 5,
    users: one.users ? { subject_claim: 'sub', create: false, roles: [], default_roles: [], ...one.users } : null,
    sso: one.sso ? { scopes: ['openid', 'profile', 'email'], ...one.sso } : null,
  });
  const budgetMeaning = (one: BudgetDocument) => ({
    ...{ timezone: null, per: 'all', models: null, action: 'block', enabled: true, ...one },
    limit: one.unit === 'money' ? Number(one.limit) : one.limit,
    alerts: one.alerts ?? [],
  });
  const byName = (left: { readonly name: string }, right: { readonly name: string }) =>
    left.name < right.name ? -1 : 1;
  return {
    global_policies: (document.global_policies ?? []).map(policyMeaning).sort(byName),
    tenants: (document.tenants ?? [])
      .map((one) => ({
        id: one.id,
        name: one.name,
        status: one.status ?? 'active',
        settings: withoutNulls(one.settings ?? {}),
        quotas: withoutNulls(one.quotas ?? {}),
        metadata: pairs(one.metadata),
        roles: (one.roles ?? [])
          .map((each) => ({
            ...each,
            description: each.description ?? '',
            resource_constraints: each.resource_constraints ?? {},
          }))
          .sort(byName),
        policies: (one.policies ?? []).map(policyMeaning).sort(byName),
        issuers: (one.issuers ?? []).map(issuerMeaning).sort(byName),
        webhooks: (one.webhooks ?? [])
          .map((each) => ({ enabled: true, ...each, description: each.description ?? null }))
          .sort((left, right) => (left.url < right.url ? -1 : 1)),
        budgets: (one.budgets ?? []).map(budgetMeaning).sort(byName),
        users: (one.users ?? [])
          .map((each) => ({
            email: each.email.toLowerCase(),
            name: each.name,
            department: each.department ?? null,
            metadata: pairs(each.metadata),
            rate_limits: each.rate_limits ?? null,
            roles: sorted(each.roles),
            status: each.status ?? 'active',
          }))
          .sort((left, right) => (left.email < right.email ? -1 : 1)),
      }))
      .sort((left, right) => (left.id < right.id ? -1 : 1)),
  };
}

/** As a list, because a dictionary may have a key `__proto__`. */
function pairs(metadata: TenantDocument['metadata']): readonly (readonly [string, string])[] {
  return Object.entries(metadata ?? {}).toSorted(([left], [right]) => (left < right ? -1 : 1));
}

/** In the order of their UTF-16 code units. */
export function sorted(texts: readonly string[] | null = []): readonly string[] {
  return (texts ?? []).toSorted((left, right) => (left < right ? -1 : 1));
}

function withoutNulls(members: object): object {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null));
}
