/**
 * Issuers: authorities whose tokens a tenant accepts. The definition of their columns and of what the API shows,
 * accepts and may change. The secret of the console's client is sealed, and no response shows it.
 */

import { type Static, Type } from 'typebox';
import type { IssuerName, RoleName } from '../../domain/ids.ts';
import type { ClaimRule, IssuerKey, IssuerUsers, StoredEarlier } from '../../domain/records.ts';
import {
  changesComponent,
  column,
  derived,
  hidden,
  newComponent,
  type ResourceOf,
  type RowOf,
  shownComponent,
  type TableOf,
  unselected,
} from '../schema/entity.ts';
import { aName } from '../schema/grammar.ts';
import { asksAlso, dateTime, described, filterText, flagOf, nullable, shownTextOrNull } from '../schema/keywords.ts';
import { instant, prefixedId, tenantId, text, texts } from '../schema/resource-parts.ts';
import { closed, oneOf, roleNames, searchText, title } from '../schema/schemas.ts';

export const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512'],
  'EdDSA',
] as const;
export const DEFAULT_ALGORITHMS: readonly string[] = ['RS256', 'ES256', 'EdDSA'];
export const DEFAULT_LEEWAY_SECONDS = 5;

export const MAX_ISSUER_LENGTH = 512;
/** The largest number of values of one rule on a claim, and of rules of one list. */
const MAX_VALUES = 100;
const MAX_RULES = 100;

const claimName = Type.String({
  minLength: 1,
  maxLength: 256,
  description: 'The name of a claim, or a JSON pointer if it begins with `/`.',
  examples: ['/kubernetes.io/namespace'],
});
const claimValues = Type.Unsafe<readonly string[]>(
  Type.Array(Type.String({ minLength: 1, maxLength: 512 }), {
    minItems: 1,
    maxItems: MAX_VALUES,
    description: 'Values or globs, of which one must match. A list claim matches if one element does.',
  }),
);
const ruleParts = { claim: claimName, in: claimValues };

export const claimRules = Type.Unsafe<readonly ClaimRule[]>(
  Type.Array(Type.Object(ruleParts, closed), { maxItems: MAX_RULES }),
);

const mappedRoles = Type.Object({ ...ruleParts, roles: Type.Unsafe<readonly RoleName[]>(roleNames) }, closed);

const usersRequest = Type.Unsafe<Partial<IssuerUsers> | null>({
  ...nullable(
    Type.Object(
      {
        subject_claim: Type.Optional(claimName),
        email_claim: Type.Optional(claimName),
        name_claim: Type.Optional(claimName),
        create: Type.Optional(flagOf('The first token of a subject creates its user. Default: false.')),
        roles: Type.Optional(Type.Array(mappedRoles, { maxItems: MAX_RULES })),
        default_roles: Type.Optional(roleNames),
      },
      closed,
    ),
  ),
  description: 'How tokens prove users. Absent or null: they prove no user.',
});

const users = Type.Unsafe<IssuerUsers>(
  Type.Object({
    subject_claim: text,
    email_claim: Type.Optional(text),
    name_claim: Type.Optional(text),
    create: Type.Boolean(),
    roles: Type.Array(Type.Object({ claim: text, in: texts, roles: texts })),
    default_roles: texts,
  }),
);

const ssoParts = {
  client_id: Type.String({ minLength: 1, maxLength: 255 }),
  label: title(100),
  required_acr: filterText(255, 'The `acr` that the ID token must have.'),
};

const ssoScopes = Type.Optional(
  Type.Array(Type.String({ minLength: 1, maxLength: 64, pattern: '^[!#-\\[\\]-~]+$' }), {
    maxItems: 20,
    description: 'Default: openid, profile and email.',
  }),
);
const LOGIN = 'The login to the console by this issuer. Absent or null: none.';

const ssoRequest = described(
  nullable(
    Type.Object(
      {
        ...ssoParts,
        client_secret: filterText(
          1024,
          'Stored sealed, and never shown. Absent in an update: the stored secret stays.',
        ),
        scopes: ssoScopes,
      },
      closed,
    ),
  ),
  LOGIN,
);

/** For a setup file, which has no secrets. */
export const ssoWithoutSecret = described(nullable(Type.Object({ ...ssoParts, scopes: ssoScopes }, closed)), LOGIN);

export const leewaySeconds = Type.Integer({
  minimum: 0,
  maximum: 60,
  description: 'Tolerance for `exp`, `nbf` and `iat`. Default: 5.',
});

/** The settings of the console's login, as stored: the secret is in a column of its own. */
const sso = Type.Object({
  client_id: text,
  scopes: texts,
  label: text,
  required_acr: Type.Optional(text),
  client_secret_set: flagOf('A client secret is stored.'),
});
export type IssuerSso = Readonly<Static<typeof sso>>;

const keySet = Type.Unsafe<{ readonly keys: readonly IssuerKey[] }>(
  Type.Object({ keys: Type.Array(Type.Unsafe<IssuerKey>({ type: 'object' })) }),
);
const keySetRequest = described(
  nullable(Type.Object({ keys: Type.Array(Type.Unsafe<unknown>({ type: 'object' }), { minItems: 1, maxItems: 100 }) })),
  'A pasted key set (RFC 7517). Null: the keys are fetched.',
);

const url = (description: string) => nullable(Type.String({ minLength: 1, maxLength: 2048, description }));

/** The state of the key set that is in use. */
const keysState = Type.Object({
  count: Type.Integer({ minimum: 0 }),
  kids: texts,
  pasted: Type.Boolean(),
  fetched_at: nullable(dateTime('When the keys were last fetched or pasted. Null: never yet.')),
  error: shownTextOrNull('Why the last attempt to fetch them failed.'),
  stale: flagOf('The keys are too old to be used: tokens of this issuer are 503.'),
});
export type IssuerKeysState = Static<typeof keysState>;

export const issuer = {
  id: column(prefixedId('iss')),
  tenant_id: column(tenantId),
  name: column(Type.Unsafe<IssuerName>(Type.String()), {
    accepts: Type.Unsafe<string>(Type.String({ maxLength: 64, ...aName })),
    changes: true,
  }),
  kind: column(oneOf('oidc', 'spiffe'), { accepts: Type.Optional(oneOf('oidc', 'spiffe')), changes: false }),
  issuer: column(text, {
    accepts: Type.String({
      maxLength: MAX_ISSUER_LENGTH,
      description: 'Compared byte for byte with `iss`. For the kind `spiffe`: `spiffe://<trust domain>`.',
      ...asksAlso({ minLength: 1 }),
    }),
    changes: true,
  }),
  audiences: column(texts, {
    accepts: Type.Unsafe<readonly string[]>(
      Type.Array(Type.String({ minLength: 1, maxLength: 512 }), { minItems: 1, maxItems: 20 }),
    ),
    changes: true,
  }),
  jwks_uri: column(nullable(text), {
    accepts: Type.Optional(url('Where the keys are. Null: the discovery document of the issuer says it.')),
    changes: true,
  }),
  jwks: column(Type.Unsafe<Static<typeof keySet> | null>(nullable(keySet)), {
    accepts: Type.Optional(keySetRequest),
    changes: true,
  }),
  ca: column(nullable(text), {
    accepts: Type.Optional(
      nullable(Type.String({ maxLength: 65_536, description: 'Certificate authorities of the issuer, PEM.' })),
    ),
    changes: true,
  }),
  algorithms: column(texts, {
    accepts: Type.Optional(
      Type.Unsafe<readonly string[]>(
        Type.Array(oneOf(...ALGORITHMS), {
          minItems: 1,
          maxItems: ALGORITHMS.length,
          description: `Default: ${DEFAULT_ALGORITHMS.join(', ')}.`,
        }),
      ),
    ),
    changes: true,
  }),
  token_types: column(Type.Unsafe<readonly string[] | null>(nullable(texts)), {
    accepts: Type.Optional(
      Type.Unsafe<readonly string[] | null>({
        ...nullable(Type.Array(Type.String({ maxLength: 100 }), { minItems: 1, maxItems: 10 })),
        description: 'Accepted values of `typ`; an empty text is an absent one. Null: at+jwt, JWT and absent.',
      }),
    ),
    changes: true,
  }),
  required_claims: column(Type.Unsafe<readonly ClaimRule[]>(Type.Array(Type.Object({ claim: text, in: texts }))), {
    accepts: Type.Optional(claimRules),
    changes: true,
  }),
  users: column(Type.Unsafe<IssuerUsers | null>(nullable(users)), {
    accepts: Type.Optional(usersRequest),
    changes: true,
  }),
  sso: column(nullable(sso), { accepts: Type.Optional(ssoRequest), changes: true }),
  enabled: column(Type.Boolean(), { accepts: Type.Optional(Type.Boolean()), changes: true }),
  max_age_seconds: column(nullable(Type.Integer()), {
    accepts: Type.Optional(
      nullable(
        Type.Integer({
          minimum: 1,
          maximum: 2_147_483_647,
          description: 'Bounds the time since `iat`. Null: no bound.',
        }),
      ),
    ),
    changes: true,
  }),
  leeway_seconds: column(Type.Integer(), {
    accepts: Type.Optional(leewaySeconds),
    changes: true,
  }),
  /** Tokens with an older `iat` are refused. Null: none. */
  revoked_before: column(nullable(instant)),
  jwks_set_at: hidden<Date | null>(),
  keys: derived(keysState),
  created_at: column(instant),
  updated_at: column(instant),
  sso_secret_sealed: unselected<Buffer | null>(),
  earlier: unselected<StoredEarlier | null>(),
  users_since: unselected<Date | null>(),
  value_since: unselected<Date | null>(),
};

export interface IssuerRow extends RowOf<typeof issuer> {}
export interface IssuerTable extends TableOf<typeof issuer> {}
export interface IssuerResource extends ResourceOf<typeof issuer> {}

export const issuerFilter = Type.Object({
  q: searchText('Any part of the name or the issuer, in any case.'),
  enabled: Type.Optional(Type.Boolean()),
});
export type IssuerFilter = Static<typeof issuerFilter>;

export const Issuer = shownComponent('Issuer', issuer);

export const newIssuer = newComponent('NewIssuer', issuer, {
  examples: [{ name: 'keycloak', issuer: 'https://login.acme.example/realms/staff', audiences: ['postern'] }],
});

export const issuerChanges = changesComponent('IssuerChanges', issuer, { examples: [{ enabled: false }] });

export type NewIssuer = Static<typeof newIssuer>;
export type IssuerChanges = Static<typeof issuerChanges>;

/** Returns the mapping without a role. A rule that gave nothing else goes with it. */
export function withoutRole(users: IssuerUsers, role: RoleName): IssuerUsers {
  const without = (roles: readonly RoleName[]): readonly RoleName[] => roles.filter((name) => name !== role);
  return {
    ...users,
    roles: users.roles
      .map((rule) => ({ ...rule, roles: without(rule.roles) }))
      .filter((rule, i) => rule.roles.length > 0 || users.roles[i]?.roles.length === 0),
    default_roles: without(users.default_roles),
  };
}
