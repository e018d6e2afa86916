/** The schemas of what /v1/iam/explain/simulate and /v1/iam/explain/who-can answer with. */

import { Type } from 'typebox';
import { component } from '../answers.ts';
import { Conditions, Explanation, KeyId, UserId } from './resources.ts';
import { oneOf } from './schemas.ts';

const text = Type.String();
const perhapsText = Type.Unsafe<string | null>({ type: ['string', 'null'] });

const { decision, status, code, detail, policy } = Explanation.properties;

export const Simulation = component(
  'Simulation',
  Type.Object({
    ...Explanation.properties,
    current: Type.Object({ decision, status, code, detail, policy }, { description: 'The decision without the proposal.' }),
  }),
);

const able = {
  verdict: Type.Unsafe<string>({
    type: 'string',
    enum: ['allow', 'conditional'],
    description: '`conditional`: the result depends on the conditions of the policies in `conditions`.',
  }),
  why: Type.Array(
    Type.Object({
      kind: oneOf('role', 'owner_role', 'scopes', 'policy'),
      name: perhapsText,
      constrained: Type.Boolean({ description: 'The grant covers only some resources.' }),
      conditional: Type.Boolean({ description: 'A policy that allows under conditions.' }),
    }),
  ),
  conditions: Type.Array(text, { description: 'Names of policies. `policies` has the policies.' }),
};

const ableUser = Type.Object({
  type: oneOf('user'),
  id: UserId,
  email: perhapsText,
  name: text,
  tenant_id: text,
  platform_admin: Type.Boolean(),
  roles: Type.Array(text),
  ...able,
});

const ableKey = Type.Object({
  type: oneOf('api_key'),
  id: KeyId,
  description: text,
  user_id: Type.Unsafe<string | null>({ type: ['string', 'null'], description: 'Null if the tenant owns the key.' }),
  expires_at: Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time' }),
  ...able,
});

export const WhoCan = component(
  'WhoCan',
  Type.Object({
    permission: text,
    resource: perhapsText,
    tenant_id: text,
    users: Type.Array(ableUser),
    keys: Type.Array(ableKey),
    policies: Type.Array(
      Type.Object({ name: text, effect: oneOf('allow', 'deny'), global: Type.Boolean(), conditions: Conditions }),
      { description: 'The policies that users and keys on this page name.' },
    ),
    platform_administrators: oneOf('allow', 'conditional', 'deny'),
    has_more: Type.Boolean(),
    next_cursor: Type.Unsafe<string | null>({
      type: ['string', 'null'],
      description: 'The `cursor` of the next page, which may be empty; null on the last.',
    }),
  }),
);
