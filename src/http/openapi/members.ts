/**
 * Descriptions of members and parameters whose schemas have none. One table, so that a name has the same meaning
 * everywhere.
 *
 * A key is the end of a member's path, such as `name` or `actor.type`. The longest matching key applies. A path begins
 * with the name of its component.
 */

import { isObject } from '../../domain/json.ts';
import type { Json } from './json.ts';

const MEMBERS: Readonly<Record<string, string>> = {
  accepted: 'The number of events that were accepted.',
  action: 'The action, such as `role.update`.',
  actions: 'Permission patterns, `<resource>:<action>`, each part a name or `*`.',
  actor: 'The principal that made the change.',
  'actor.type': '`user`, `api_key` or `system`.',
  address: "The client's address; null if it is not known.",
  agents: 'Globs of agent names; `*` matches any characters.',
  alg: 'The algorithm, `ES256`.',
  algorithms: 'Accepted signature algorithms.',
  allow: 'The number of allowed requests.',
  allow_keys_without_expiry: 'Whether API keys may be created without an expiry.',
  applies: 'Whether the policy is in force for the principal.',
  applies_to: 'The principals that the policy applies to: all of them, or the holders of `attached_roles`.',
  attached_roles: 'The roles whose holders the policy applies to.',
  attempted_at: 'When the last attempt began; null before the first.',
  attempts: 'Attempts since the delivery was made or replayed.',
  audiences: 'The `aud` of a token must have one of them.',
  auth_type: '`ldap` for a login at a directory; absent for a login with email address and password.',
  between: 'A start and an end, `HH:MM`, in the time zone of the tenant. The value must be between them.',
  builtin: 'Whether the role is built in and cannot be changed.',
  ca: 'Certificate authorities of the issuer, PEM; null for those of the system.',
  'WebhookDelivery.state': '`waiting` for its first or next attempt, `delivered` or `failed`.',
  webhook_id: 'The webhook that receives the event.',
  'Webhook.url': 'The address that events are sent to.',
  'WebhookWithSecret.url': 'The address that events are sent to.',
  claim: 'The name of a claim, or a JSON pointer if it begins with `/`.',
  'proof.claims': 'Conditions on claims that a token must meet, all of them.',
  client_id: 'The id of the client at the issuer.',
  client_ip: "The client's address.",
  code: 'The error code, for programs.',
  collections: 'Globs of collection names; `*` matches any characters.',
  completion_tokens: 'Tokens of the responses.',
  'policies.conditions': 'The conditions of the policy, each with its result.',
  content_type: 'The content type of the request.',
  count: 'The number of requests.',
  'keys.count': 'The number of keys.',
  created_at: 'When the resource was created.',
  'Session.created_at': 'When the user logged in.',
  data: 'The rows of the page.',
  'ApiKeyImport.data': 'One result for each key, in the order of the request.',
  'ApiKeyRevocations.data': 'One result for each key.',
  decision: '`allow`, `deny` or `public`.',
  default_roles: 'Roles of every user of the issuer.',
  default_model: 'The model of requests that name none.',
  deny: 'The number of denied requests.',
  department: "The user's department.",
  description: 'A message for people.',
  detail: 'A sentence for people.',
  dry_run: 'Whether nothing was changed.',
  effect: '`allow` or `deny`.',
  email: "The user's email address.",
  'Login.email': 'The email address to log in with.',
  email_claim: 'The claim that has the email address.',
  enabled: 'Whether the policy is in force, or is evaluated if its mode is `report`.',
  'Issuer.enabled': 'Whether its tokens are accepted.',
  'NewIssuer.enabled': 'Whether its tokens are accepted. Default: true.',
  'IssuerChanges.enabled':
    'Whether its tokens are accepted. `false` ends the sessions that began with them. `true` accepts tokens that are issued after the change.',
  error: 'The same error, in the format of the OpenAI API.',
  'error.param': 'The member or parameter that is wrong; null if there is none.',
  'error.type': 'The type of the error, as the SDKs of OpenAI know it.',
  errors: 'Every problem of the body, with its member.',
  'errors.message': 'The error, and the values that are allowed.',
  'errors.path': 'A JSON Pointer to the member (RFC 6901).',
  events: 'Usage events, each counted once by its id.',
  exceeded: 'Whether the limit rejects the request.',
  expires_at: 'When the key expires; null if it does not.',
  expires_before: 'Only keys that expire before this time.',
  expires_in_days: 'Days until the key expires, in place of `expires_at`.',
  explanation: 'The steps of the decision.',
  from: 'The beginning of the period.',
  global: 'Whether the policy belongs to the installation and applies to all tenants.',
  grants: "The principal's roles and, for a key, its scopes, each with what it contributes.",
  'grants.kind': '`role` or `scopes`.',
  'grants.name': 'The name of the role.',
  'grants.outcome': 'Whether it permits the request.',
  'grants.permissions': 'Its permission patterns.',
  has_more: 'Whether another page follows.',
  hash: 'The hash of the newest seal, hexadecimal.',
  id: 'The id.',
  'NewTenant.id': 'The id of the new tenant. It never changes.',
  'Tenant.id': 'The id of the tenant, which never changes.',
  'target.id': 'The id or name of the object.',
  ids: 'The ids of the keys.',
  in: 'The value must be one of these.',
  interval: 'The length of each period.',
  issuer: 'The value of `iss`.',
  'identities.issuer': 'The name of an issuer of the tenant.',
  'proof.issuer': 'The name of an issuer of the tenant.',
  jwks: 'The pasted key set; null if the keys are fetched.',
  jwks_uri: 'Where the keys are; null if the discovery document says it.',
  key: 'The API key as it was before.',
  key_id: 'The id of the API key.',
  keys: 'The API keys.',
  'ImportedApiKeys.keys': 'The keys to import.',
  'KeySet.keys': 'Public keys that verify access tokens (RFC 7517).',
  'Issuer.keys': 'The state of the keys that verify its tokens.',
  'jwks.keys': 'Public keys (RFC 7517).',
  kid: 'The id of the key.',
  kids: 'The ids of the keys, of those that have one.',
  kind: 'The kind.',
  'Notice.kind': 'The reason for the notice, for programs.',
  'why.kind': '`role`, `scopes` or `policy`.',
  'conditions.kind': 'The name of the condition.',
  kty: 'The type of the key, `EC`.',
  label: 'The text of the button on the login page.',
  last_four: 'The last four characters of the key.',
  last_used_at: 'When the key last authenticated a request, to the minute; null if it never did.',
  leeway_seconds: 'Tolerance for `exp`, `nbf` and `iat`.',
  'limits.name': 'The name of the limit.',
  'limits.of': 'The limit itself.',
  line: 'The number of the step, 1 to 18.',
  matched: 'Whether it matches the request.',
  max_age_seconds: 'Bounds the time since `iat`; null for no bound.',
  max_collections: 'The maximum number of collections of the tenant.',
  max_tokens_per_request: 'The maximum number of tokens that one request may ask for.',
  max_users: 'The maximum number of users of the tenant.',
  message: 'A sentence for people.',
  'applies_to.metadata': 'The keys that have all of these pairs.',
  method: 'The HTTP method of the request.',
  missing: 'Whether the request lacks the value that the condition compares.',
  mode: '`enforce`, or `report`: the policy has no effect, and decisions that it would have changed are recorded.',
  model: 'The model.',
  models: 'Globs of model names; `*` matches any characters.',
  monthly_tokens: 'The tokens that the tenant may spend in a month.',
  name: 'The name.',
  'ApiKey.name': 'A name for people; null if the key has none.',
  'key.name': 'A name for people; null if the key has none.',
  'User.name': "The user's name.",
  'NewUser.name': "The user's name.",
  'UserChanges.name': "The user's name.",
  'CreatedUser.name': "The user's name.",
  'Me.name': 'The name of the user or key.',
  'steps.name': 'The name of the step.',
  name_claim: 'The claim that has the name.',
  new_password: 'The new password: 15 to 256 characters, and not a common one.',
  not_between: 'A start and an end, `HH:MM`. The value must not be between them.',
  not_in: 'The value must be none of these.',
  number: 'The number of the seal.',
  object: 'Always `list`.',
  ok: 'Whether the step succeeded.',
  old_password: 'The current password.',
  operand: 'The values that the request is compared with.',
  operator: 'How the value is compared.',
  outcome: 'The outcome.',
  'DecisionsOfMinute.outcome': '`allow` or `deny`.',
  'ExplainedDecision.outcome': '`allow` or `deny`.',
  'RecentDecision.outcome': '`allow` or `deny`.',
  password: "The user's password.",
  pasted: 'Whether the keys are pasted and not fetched.',
  path: 'The path of the request.',
  period: 'The month, `YYYY-MM`.',
  permission: 'The permission that the request requires.',
  permissions: 'Permission patterns, `<resource>:<action>`, each part a name or `*`.',
  platform_admin: 'Whether the principal administers the whole installation.',
  platform_administrators: 'Whether platform administrators have the permission as well.',
  policies: 'The policies that were evaluated.',
  policy: 'The name of the policy that denies.',
  prefix: 'The first characters of the key, for people.',
  principal: 'The principal that sent the request.',
  'principal.id': 'The id of the user or key.',
  prompt_tokens: 'Tokens of the requests.',
  quotas: 'The quotas of the tenant; an absent quota does not limit.',
  rate_limit_rpm: 'Requests in a minute; null for no limit.',
  remaining: 'How much is left.',
  require_stream_usage:
    'Whether a stream of completions must ask for its usage (`stream_options.include_usage`). Without it, the server books an estimate.',
  request_id: 'The id of the request, as in the header `x-request-id`.',
  requests: 'The number of requests.',
  required_acr: 'The `acr` that the ID token must have.',
  required_claims: 'Conditions on claims that a token must meet, all of them.',
  resets_at: 'When the limit begins again.',
  resource: 'The resource of the permission.',
  resource_constraints: 'The resources that are permitted, by kind; an absent kind is not constrained.',
  resources: 'Globs of resources, `<kind>/<name>`.',
  'Explanation.resources': 'The resources that the request names.',
  result: '`success`, `failure` or `refused`.',
  revoked_before: 'Tokens that were issued earlier are refused; null for none.',
  roles: 'The names of the roles.',
  route: 'The route of the request: method and path template.',
  scopes: 'Permission patterns that the key is limited to.',
  'sso.scopes': 'The scopes of the login. Default: openid, profile and email.',
  seals: 'The number of seals.',
  settings: 'The settings of the tenant.',
  status: 'The state of the resource.',
  'ApiKey.status': '`active`, `disabled`, `expired` or `revoked`.',
  'IssuedApiKey.status': '`active`, `disabled`, `expired` or `revoked`.',
  'User.status': '`active` or `deactivated`.',
  'Tenant.status': '`active` or `suspended`.',
  'Explanation.status': 'The HTTP status that the request would get.',
  'explanation.status': 'The HTTP status that the request would get.',
  'Simulation.status': 'The HTTP status that the request would get.',
  'current.status': 'The HTTP status that the request gets without the proposals.',
  'Problem.status': 'The HTTP status.',
  step: 'The name of the step.',
  steps: 'The steps, in order. The last one ended the decision.',
  subject: 'The id of the user or key.',
  sso: 'The login to the console by this issuer; null for none.',
  'identities.subject': 'The value of the claim that identifies a user of the issuer.',
  'proof.subject': 'The subject of the token, or a glob.',
  subject_claim: 'The claim that identifies a user for good. Default: `sub`.',
  target: 'The object of the change.',
  'target.type': 'The kind of the object.',
  tenant_id: 'The id of the tenant.',
  time: 'When it happened.',
  'request.time': 'When the request was sent.',
  timezone: 'The time zone of the tenant, such as `Europe/Berlin`.',
  title: 'The title of the error code.',
  to: 'The end of the period.',
  token_type: 'Always `Bearer`.',
  token_types: 'Accepted values of `typ`; an empty text is an absent one. Null: at+jwt, JWT and absent.',
  total_tokens: 'Tokens of requests and responses.',
  type: '`user` or `api_key`.',
  'Problem.type': 'A URI that names the error code.',
  updated_at: 'When the resource was last updated.',
  use: 'Always `sig`.',
  user_agent: 'The user agent that logged in.',
  user_id: 'The id of the user that owns the key; null if the tenant owns it.',
  username: 'The username at the directory.',
  users: 'The users.',
  'Issuer.users': 'How its tokens prove users; null if they prove none.',
  'users.create': 'Whether the first token of a subject creates its user.',
  'users.roles': 'Roles that values of claims give.',
  why: 'The source of the permission.',
  'why.name': 'The name of the role or policy.',
};

const PARAMETERS: Readonly<Record<string, string>> = {
  applies_to: 'Only policies with this `applies_to`.',
  effect: 'Only policies with this effect.',
  email: 'Only the user with this email address.',
  enabled: 'Only policies that are, or are not, enabled.',
  expires_before: 'Only keys that expire before this time.',
  force: '`true` makes the change even if it locks out its author.',
  mode: 'Only policies of this mode.',
  outcome: 'Only decisions with this outcome.',
  request_id: 'Only rows of the request with this id.',
  result: 'Only rows with this result.',
  status: 'Only resources in this state.',
  user_id: 'Only keys of this user.',
};

/** Returns the description of a query parameter without one of its own; undefined if the table lacks it. */
export function parameterDescription(name: string): string | undefined {
  return PARAMETERS[name];
}

/** Returns the components with a description for every member in the table. */
export function withMemberDescriptions(components: Json): Json {
  const { schemas } = components;
  if (!isObject(schemas)) return components;
  return {
    ...components,
    schemas: Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, described(schema, [name])])),
  };
}

function described(schema: unknown, path: readonly string[]): unknown {
  if (Array.isArray(schema)) return schema.map((each) => described(each, path));
  if (!isObject(schema)) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => {
      if (keyword !== 'properties' || !isObject(value))
        return [keyword, NESTED.has(keyword) ? described(value, path) : value];
      const members = Object.entries(value).map(([name, member]) => [name, describedMember(member, [...path, name])]);
      return [keyword, Object.fromEntries(members)];
    }),
  );
}

const NESTED: ReadonlySet<string> = new Set(['items', 'additionalProperties', 'allOf', 'anyOf', 'oneOf']);

function describedMember(member: unknown, path: readonly string[]): unknown {
  const inner = described(member, path);
  if (!isObject(inner) || '$ref' in inner || 'description' in inner) return inner;
  const description = descriptionOf(path);
  return description === undefined ? inner : { description, ...inner };
}

/** Returns the longest end of the path that is in the table. */
function descriptionOf(path: readonly string[]): string | undefined {
  const ends = path.map((_name, i) => path.slice(i).join('.'));
  const known = ends.find((end) => Object.hasOwn(MEMBERS, end));
  return known === undefined ? undefined : MEMBERS[known];
}
