/**
 * Which principal the token of an issuer proves, for random issuers, keys, links, users and tokens, between random
 * changes of all of them. The expected answer comes from the obvious rules over the current state.
 */

import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Resolution } from '../../src/credential-cache/credential-cache.ts';
import { linkKey } from '../../src/credential-cache/issuer-values.ts';
import type { Admission, AdmittedIssuerUser } from '../../src/credential-cache/ports.ts';
import type { RoleName } from '../../src/domain/ids.ts';
import type {
  ChangeKind,
  ClaimRule,
  IssuerKey,
  IssuerRecord,
  LinkRecord,
  ProofRecord,
} from '../../src/domain/records.ts';
import { makeIssuerKey, signToken } from '../support/issuer.ts';
import { issuersParts } from '../support/issuers-parts.ts';
import { enough, runs } from '../support/properties.ts';
import { digest, issuerId, issuerName, keyId, roleName, userId } from './support/ids.ts';
import { EMPTY, ModelStore, type State } from './support/model-store.ts';
import { AWAY, aKey, aLive, anIssuer, aTenant, aUser, HOME, NOW } from './support/world.ts';

const KEYS = [makeIssuerKey('EdDSA', 'same'), makeIssuerKey('EdDSA', 'same')] as const;
const SECONDS = NOW / 1000;

interface World {
  readonly issuers: readonly IssuerShape[];
  readonly keys: readonly KeyShape[];
  readonly users: readonly { readonly active: boolean; readonly roles: readonly RoleName[] }[];
  readonly links: readonly {
    readonly issuer: number;
    readonly subject: string;
    readonly user: number;
    readonly asOf: number | undefined;
  }[];
}
interface IssuerShape {
  readonly enabled: boolean;
  readonly audiences: readonly string[];
  readonly required: readonly ClaimRule[];
  readonly signer: number;
  readonly maxAge: number | undefined;
  readonly revokedBefore: number | undefined;
  readonly earlier:
    | { readonly until: number; readonly audiences: readonly string[]; readonly required: readonly ClaimRule[] }
    | undefined;
  readonly users:
    | {
        readonly create: boolean;
        readonly since: number | undefined;
        readonly subject: string;
        readonly roles: readonly ClaimRule[];
      }
    | undefined;
}
interface KeyShape {
  readonly issuer: number;
  readonly subject: string;
  readonly claims: readonly ClaimRule[];
  readonly expires: number | undefined;
  readonly state: 'on' | 'disabled' | 'revoked';
}
interface TokenShape {
  readonly iss: number;
  readonly signer: number;
  readonly claims: Readonly<Record<string, unknown>>;
  readonly iat: number;
  readonly exp: number;
}

const GIVEN = roleName('given');
const url = (index: number): string => `https://issuer-${index}.example`;
const holds = (text: string, glob: string): boolean =>
  glob.includes('*')
    ? text.startsWith(glob.slice(0, glob.indexOf('*'))) && text.endsWith(glob.slice(glob.indexOf('*') + 1))
    : text === glob;
const satisfies = (claims: TokenShape['claims'], rules: readonly ClaimRule[]): boolean =>
  rules.every(({ claim, in: values }) => {
    const value = claims[claim];
    return [value].flat(1).some((item) => typeof item === 'string' && values.some((glob) => holds(item, glob)));
  });

/** The obvious rules. */
function naive(world: World, { iss, signer, claims, iat, exp }: TokenShape): string {
  const issuer = world.issuers[iss];
  if (issuer === undefined) return 'unknown_issuer';
  if (!issuer.enabled) return 'issuer_disabled';
  if (signer !== issuer.signer) return 'signature';
  const { earlier, users } = issuer;
  const all = earlier !== undefined && iat < earlier.until ? [issuer, earlier] : [issuer];
  if (!all.every(({ audiences }) => [claims['aud']].flat(1).some((aud) => audiences.some((own) => own === aud))))
    return 'audience';
  if (!all.every(({ required }) => satisfies(claims, required))) return 'claims';
  // Step 7. The others are reasons of step 8.
  if (exp + 5 <= 0) return 'expired';
  if (issuer.revokedBefore !== undefined && iat < issuer.revokedBefore) return 'revoked_before';
  if (iat - 5 > 0) return 'not_yet_valid';
  if (issuer.maxAge !== undefined && iat + issuer.maxAge + 5 <= 0) return 'too_old';

  const sub = claims['sub'];
  const matching = world.keys
    .map((key, index) => ({ ...key, index }))
    .filter(
      (key) =>
        key.state !== 'revoked' &&
        key.issuer === iss &&
        typeof sub === 'string' &&
        holds(sub, key.subject) &&
        satisfies(claims, key.claims),
    );
  const alive = matching.filter(({ expires }) => expires === undefined || expires > 0);
  const exact = alive.filter(({ subject }) => !subject.includes('*'));
  const [key, ...more] = exact.length > 0 ? exact : alive;
  if (more.length > 0) return 'ambiguous';
  if (key !== undefined) return key.state === 'disabled' ? 'disabled' : `key ${key.index}`;
  if (matching.length > 0) return 'key_expired';

  const subject = users && claims[users.subject];
  if (users === undefined || typeof subject !== 'string') return 'no_principal';
  const counts = iat >= (users.since ?? Number.NEGATIVE_INFINITY);
  const roles = satisfies(claims, users.roles) && users.roles.length > 0 ? [GIVEN] : [];
  const link = world.links.find((one) => one.issuer === iss && one.subject === subject);
  if (link === undefined) {
    if (!users.create || !counts) return 'no_principal';
    return claims['email'] === 'taken' ? 'email_in_use' : `user ${world.users.length} ${roles}`;
  }
  const user = world.users[link.user];
  if (user?.active !== true) return 'user_deactivated';
  const mapped = counts && (link.asOf === undefined ? users.roles.length > 0 : iat > link.asOf);
  return `user ${link.user} ${mapped ? roles : user.roles}`;
}

function proofOf(key: KeyShape, index: number): ProofRecord {
  const { subject, claims, expires } = key;
  return {
    digest: digest(index),
    subject,
    claims,
    expiresAtMs: expires === undefined ? undefined : NOW + expires * 1000,
  };
}

function issuerOf(world: World, shape: IssuerShape, index: number): IssuerRecord {
  const jwk: IssuerKey = KEYS[shape.signer === 0 ? 0 : 1].jwk;
  const accepts = { algorithms: ['EdDSA'], tokenTypes: ['JWT'], keys: [jwk], leewaySeconds: 5 };
  const base = { ...accepts, maxAgeSeconds: shape.maxAge };
  const { earlier, users } = shape;
  return anIssuer({
    ...base,
    id: issuerId(index),
    tenantId: index % 2 === 0 ? HOME : AWAY,
    name: issuerName(`issuer-${index}`),
    enabled: shape.enabled,
    issuer: url(index),
    audiences: shape.audiences,
    requiredClaims: shape.required,
    revokedBeforeMs: shape.revokedBefore === undefined ? undefined : NOW + shape.revokedBefore * 1000,
    earlier: earlier && {
      ...base,
      audiences: earlier.audiences,
      requiredClaims: earlier.required,
      untilMs: NOW + earlier.until * 1000,
    },
    users: users && {
      subject_claim: users.subject,
      email_claim: 'email',
      create: users.create,
      // One rule for each claim would be alternatives.
      roles: users.roles.slice(0, 1).map((rule) => ({ ...rule, roles: [GIVEN] })),
      default_roles: [],
    },
    usersSinceMs: users?.since === undefined ? undefined : NOW + users.since * 1000,
    globProofs: world.keys.flatMap((key, i) =>
      key.issuer === index && key.subject.includes('*') && key.state !== 'revoked' ? [proofOf(key, i)] : [],
    ),
  });
}

function stateOf(world: World): State {
  const links = new Map<string, LinkRecord>();
  const linkOf = (issuer: number, subject: string): LinkRecord =>
    links.get(linkKey(issuerId(issuer), subject)) ?? { proofs: [], user: undefined };
  world.keys.forEach((key, i) => {
    if (key.subject.includes('*') || key.state === 'revoked') return;
    const link = linkOf(key.issuer, key.subject);
    links.set(linkKey(issuerId(key.issuer), key.subject), { ...link, proofs: [...link.proofs, proofOf(key, i)] });
  });
  for (const { issuer, subject, user, asOf } of world.links) {
    const rolesAsOfMs = asOf === undefined ? undefined : NOW + asOf * 1000;
    links.set(linkKey(issuerId(issuer), subject), {
      ...linkOf(issuer, subject),
      user: { id: userId(user), rolesAsOfMs },
    });
  }
  const tenant = (issuer: number) => (issuer % 2 === 0 ? HOME : AWAY);
  const homes = new Map(world.links.map(({ user, issuer }) => [user, tenant(issuer)]));
  return {
    ...EMPTY,
    tenants: new Map([aTenant(), aTenant({ id: AWAY })].map((one) => [one.id, one])),
    issuers: new Map(world.issuers.map((shape, i) => [url(i), issuerOf(world, shape, i)])),
    links,
    users: new Map(
      world.users.map(({ active, roles }, i) => [
        userId(i),
        aUser({ id: userId(i), tenantId: homes.get(i) ?? HOME, status: active ? 'active' : 'deactivated', roles }),
      ]),
    ),
    keys: new Map(
      world.keys.map(({ issuer, expires, state }, i) => [
        digest(i),
        aKey({
          id: keyId(i),
          digest: digest(i),
          tenantId: tenant(issuer),
          userId: undefined,
          expiresAtMs: expires === undefined ? undefined : NOW + expires * 1000,
          revoked: state === 'revoked',
          disabled: state === 'disabled',
          issuerId: issuerId(issuer),
        }),
      ]),
    ),
  };
}

/** The store, which tells the cache of exactly the entries that differ. */
class Stand {
  world: World;
  readonly #store: ModelStore;
  readonly #live: ReturnType<typeof aLive>['live'];
  #delivered = 0;

  constructor(world: World) {
    this.world = world;
    this.#store = new ModelStore(stateOf(world));
    const admission = { admit: async (user: AdmittedIssuerUser) => this.#admit(user) };
    const { live } = aLive(this.#store, {
      issuers: { ...issuersParts, admission },
      // Half of the tokens have the header of our own.
      verifier: { hasOwnHeader: (token) => token.charCodeAt(60) % 2 === 0, verify: async () => ({ kind: 'foreign' }) },
      feed: { polledAtMs: Number.POSITIVE_INFINITY, catchUp: async () => this.#deliver() },
    });
    this.#live = live;
  }

  change(world: World): void {
    const [before, after] = [stateOf(this.world), stateOf(world)];
    this.world = world;
    const kinds: readonly [ChangeKind, 'issuers' | 'links' | 'users' | 'keys'][] = [
      ['issuer', 'issuers'],
      ['link', 'links'],
      ['user', 'users'],
      ['key', 'keys'],
    ];
    for (const [kind, map] of kinds) {
      const names = new Set([...before[map].keys(), ...after[map].keys()]);
      for (const name of names) {
        if (JSON.stringify(before[map].get(name)) !== JSON.stringify(after[map].get(name)))
          this.#store.commit(kind, name, after);
      }
    }
  }

  deliver(): void {
    this.#deliver();
  }

  async resolve(token: TokenShape, examines = false): Promise<string> {
    const { iss, signer, claims, iat, exp } = token;
    const text = signToken(KEYS[signer === 0 ? 0 : 1], {
      ...claims,
      iss: url(iss),
      iat: SECONDS + iat,
      exp: SECONDS + exp,
    });
    const form = { kind: 'token', token: text, digest: createHash('sha256').update(text).digest('hex') } as const;
    const resolution = examines ? this.#live.examine(form, undefined, NOW) : this.#live.resolve(form, undefined, NOW);
    return this.#inWords(await resolution);
  }

  #deliver(): void {
    this.#store.deliver(this.#live, this.#delivered);
    this.#delivered = this.#store.position;
  }

  #admit({ issuer, subject, email, roles, iatMs }: AdmittedIssuerUser): Admission {
    const { world } = this;
    const index = world.issuers.findIndex((_, i) => issuerId(i) === issuer.id);
    const asOf = (iatMs - NOW) / 1000;
    const link = world.links.find((one) => one.issuer === index && one.subject === subject);
    if (link === undefined) {
      if (email === 'taken') return { kind: 'refused', reason: 'email_in_use' };
      const user = world.users.length;
      this.change({
        ...world,
        users: [...world.users, { active: true, roles }],
        links: [...world.links, { issuer: index, subject, user, asOf }],
      });
    } else {
      this.change({
        ...world,
        users: world.users.map((user, i) => (i === link.user ? { ...user, roles } : user)),
        links: world.links.map((one) => (one === link ? { ...one, asOf } : one)),
      });
    }
    return { kind: 'admitted' };
  }

  #inWords({ identity }: Resolution): string {
    if (identity.kind === 'invalid') return identity.reason;
    if (identity.kind !== 'proved') return identity.kind;
    const { principal } = identity;
    expect(principal.provedBy).toBeDefined();
    if (principal.kind === 'api_key') return `key ${this.world.keys.findIndex((_, i) => keyId(i) === principal.id)}`;
    const index = this.world.users.findIndex((_, i) => userId(i) === principal.id);
    return `user ${index} ${principal.roles}`;
  }
}

const maybe = <T>(of: fc.Arbitrary<T>, weight = 1) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight, arbitrary: of });
const rarely = <T>(rare: T, usual: T) => fc.constantFrom(...Array.from({ length: 9 }, () => usual), rare);
const text = fc.constantFrom('p', 'q', 'pq');
const globOrText = fc.oneof(text, fc.constantFrom('*', 'p*', '*q'));
const rules = fc.array(
  fc.record({ claim: fc.constantFrom('env', 'sub'), in: fc.array(globOrText, { minLength: 1, maxLength: 2 }) }),
  { maxLength: 1 },
);
const audiences = fc.constantFrom(['a'], ['a', 'b'], ['b', 'a'], ['a'], ['b']);
const when = fc.integer({ min: -30, max: 6 });
const anIssuerShape: fc.Arbitrary<IssuerShape> = fc.record({
  enabled: fc.integer({ min: 0, max: 5 }).map((n) => n > 0),
  audiences,
  required: fc.oneof({ weight: 4, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: rules }),
  signer: rarely(1, 0),
  maxAge: maybe(fc.integer({ min: 10, max: 60 })),
  revokedBefore: maybe(fc.integer({ min: -60, max: 0 })),
  earlier: maybe(fc.record({ until: when, audiences, required: rules })),
  users: maybe(
    fc.record({ create: fc.boolean(), since: maybe(when), subject: fc.constantFrom('sub', 'oid'), roles: rules }),
    8,
  ),
});
const aKeyShape = (issuers: number): fc.Arbitrary<KeyShape> =>
  fc.record({
    issuer: fc.integer({ min: 0, max: issuers - 1 }),
    subject: globOrText,
    claims: rules,
    expires: maybe(fc.constantFrom(-10, 100)),
    state: fc.constantFrom<KeyShape['state']>('on', 'on', 'on', 'disabled', 'revoked'),
  });
const aUserShape = fc.record({
  active: fc.boolean(),
  roles: fc.constant([roleName('own')]),
});
const ISSUERS = 3;
/** A user belongs to one tenant, and so to issuers of it. */
const aWorld: fc.Arbitrary<World> = fc.record({
  issuers: fc.array(anIssuerShape, { minLength: ISSUERS, maxLength: ISSUERS }),
  keys: fc.array(aKeyShape(ISSUERS), { minLength: 3, maxLength: 4 }),
  users: fc.array(aUserShape, { minLength: 3, maxLength: 3 }),
  links: fc.uniqueArray(
    fc
      .record({ issuer: fc.integer({ min: 0, max: ISSUERS - 1 }), subject: text, asOf: maybe(when) })
      .map((link) => ({ ...link, user: link.issuer })),
    { maxLength: 3, selector: ({ issuer, subject }) => `${issuer} ${subject}` },
  ),
});
const aToken: fc.Arbitrary<TokenShape> = fc.record({
  iss: fc.constantFrom(0, 0, 0, 0, 1, 1, 1, 2, 2, ISSUERS),
  signer: rarely(1, 0),
  claims: fc.record(
    {
      sub: fc.oneof({ weight: 5, arbitrary: text }, { weight: 1, arbitrary: fc.constant(7) }),
      oid: text,
      aud: fc.constantFrom('a', 'a', 'b', ['x', 'a']),
      env: fc.oneof(text, fc.array(text, { maxLength: 2 }), fc.constant(1)),
      email: fc.constantFrom('free', 'taken'),
    },
    { requiredKeys: ['aud', 'email'] },
  ),
  iat: when,
  exp: fc.constantFrom(60, 60, 60, -3, -10),
});
/** Tokens that come again between changes, each of one thing. */
const steps = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('check' as const),
        token: fc.integer({ min: 0, max: 3 }),
        examines: fc.boolean(),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('issuer' as const),
        at: fc.integer({ min: 0, max: ISSUERS - 1 }),
        to: anIssuerShape,
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('key' as const),
        at: fc.integer({ min: 0, max: 2 }),
        to: aKeyShape(ISSUERS),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('user' as const), at: fc.integer({ min: 0, max: 2 }), to: aUserShape }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('unlink' as const), at: fc.integer({ min: 0, max: 2 }) }) },
  ),
  { minLength: 4, maxLength: 14 },
);

const replaced = <T>(list: readonly T[], at: number, to: T): readonly T[] =>
  list.map((item, i) => (i === at ? to : item));

const OUTCOMES = [
  'key',
  'user',
  'ambiguous',
  'key_expired',
  'disabled',
  'user_deactivated',
  'no_principal',
  'email_in_use',
]
  .concat(['unknown_issuer', 'issuer_disabled', 'signature', 'audience', 'claims', 'revoked_before', 'too_old'])
  .concat(['not_yet_valid', 'expired']);

test('a token proves what the obvious rules say, after any changes', async () => {
  const seen = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(aWorld, fc.array(aToken, { minLength: 4, maxLength: 4 }), steps, async (world, tokens, ops) => {
      const stand = new Stand(world);
      for (const op of ops) {
        const { world: now } = stand;
        if (op.kind === 'check') {
          const token = tokens[op.token];
          if (token === undefined) continue;
          const expected = naive(now, token);
          if (!op.examines) {
            const [kind = ''] = expected.split(' ');
            seen.set(kind, (seen.get(kind) ?? 0) + 1);
            expect(await stand.resolve(token)).toBe(expected);
          } else {
            await stand.resolve(token, true);
            expect(stand.world, 'an examination changes nothing').toBe(now);
          }
          continue;
        }
        if (op.kind === 'issuer') stand.change({ ...now, issuers: replaced(now.issuers, op.at, op.to) });
        else if (op.kind === 'key') stand.change({ ...now, keys: replaced(now.keys, op.at, op.to) });
        else if (op.kind === 'user') stand.change({ ...now, users: replaced(now.users, op.at, op.to) });
        else stand.change({ ...now, links: now.links.filter((_, i) => i !== op.at) });
        stand.deliver();
      }
    }),
    { numRuns: runs(1000) },
  );
  for (const outcome of OUTCOMES) expect(seen.get(outcome) ?? 0, outcome).toBeGreaterThanOrEqual(enough(1));
});
