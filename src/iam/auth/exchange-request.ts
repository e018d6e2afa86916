/** The request of a token exchange (RFC 8693, section 2.1), read from the parameters of its form. */

import { type Static, Type } from 'typebox';
import { isPermissionPattern } from '../../decision/permissions.ts';
import { type ErrorCode, Refusal } from '../../domain/errors.ts';
import { asksAlso, component } from '../schema/keywords.ts';

const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:token-exchange';
export const ACCESS_TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:access_token';
const SUBJECT_TOKEN_TYPES: readonly string[] = [ACCESS_TOKEN_TYPE, 'urn:ietf:params:oauth:token-type:jwt'];

const MAX_SCOPE_LENGTH = 2048;

const parameter = (description: string) => Type.Optional(Type.String({ description }));

/** Unknown parameters are ignored (RFC 6749, section 3.2). */
export const ExchangeForm = component(
  'TokenExchange',
  Type.Object(
    {
      grant_type: parameter(`Must be \`${GRANT_TYPE}\`.`),
      subject_token: parameter('The token of another issuer.'),
      subject_token_type: parameter(`Must be ${SUBJECT_TOKEN_TYPES.map((type) => `\`${type}\``).join(' or ')}.`),
      scope: parameter(
        `Permission patterns, separated by spaces. The access token has only the permissions that they and the principal both have. Default: all of the principal. At most ${MAX_SCOPE_LENGTH} characters.`,
      ),
      requested_token_type: parameter(`Must be \`${ACCESS_TOKEN_TYPE}\`, which is the default.`),
      audience: parameter('The audience of this installation, which is the default.'),
      resource: parameter('The same as `audience`.'),
      actor_token: parameter('Not supported: a request with it is rejected.'),
    },
    {
      additionalProperties: true,
      ...asksAlso({ required: ['grant_type', 'subject_token', 'subject_token_type'] }),
      examples: [{ grant_type: GRANT_TYPE, subject_token: 'eyJhbGciOi…', subject_token_type: ACCESS_TOKEN_TYPE }],
    },
  ),
);

export interface ExchangeRequest {
  readonly subjectToken: string;
  /** Permission patterns, each once. Undefined: the session is not narrowed. */
  readonly scope: readonly string[] | undefined;
}

/**
 * @param ours the values of `audience` and `resource` that name this installation
 * @throws Refusal `invalid_parameter`, `unsupported_grant_type`, `invalid_target`, `invalid_scope`
 */
export function readExchange(form: Static<typeof ExchangeForm>, ours: readonly string[]): ExchangeRequest {
  const grantType = required(form, 'grant_type');
  if (grantType !== GRANT_TYPE) throw refusal('unsupported_grant_type', 'grant_type', `must be ${GRANT_TYPE}.`);
  const subjectToken = required(form, 'subject_token');
  if (!SUBJECT_TOKEN_TYPES.includes(required(form, 'subject_token_type')))
    throw refusal('invalid_parameter', 'subject_token_type', `must be ${SUBJECT_TOKEN_TYPES.join(' or ')}.`);
  if ((textOf(form, 'requested_token_type') ?? ACCESS_TOKEN_TYPE) !== ACCESS_TOKEN_TYPE)
    throw refusal('invalid_parameter', 'requested_token_type', `must be ${ACCESS_TOKEN_TYPE}, or absent.`);
  if (textOf(form, 'actor_token') !== undefined)
    throw refusal('invalid_parameter', 'actor_token', 'is not supported: the access token acts for its subject only.');
  for (const name of ['audience', 'resource'] as const) {
    const value = textOf(form, name);
    if (value !== undefined && !ours.includes(value))
      throw refusal('invalid_target', name, 'does not name this installation.');
  }
  const scope = textOf(form, 'scope');
  return { subjectToken, scope: scope === undefined ? undefined : patternsOf(scope) };
}

type Form = Static<typeof ExchangeForm>;
type Name = keyof Form & string;

/** An empty parameter is an absent one (RFC 6749, section 3.2). */
function textOf(form: Form, name: Name): string | undefined {
  const value = form[name];
  return value === '' ? undefined : value;
}

function required(form: Form, name: Name): string {
  const value = textOf(form, name);
  if (value === undefined) throw refusal('invalid_parameter', name, 'is required.');
  return value;
}

function patternsOf(scope: string): readonly string[] {
  if (scope.length > MAX_SCOPE_LENGTH)
    throw refusal('invalid_scope', 'scope', `may have at most ${MAX_SCOPE_LENGTH} characters.`);
  const patterns = new Set(scope.split(' ').filter((pattern) => pattern !== ''));
  if (patterns.size === 0 || ![...patterns].every(isPermissionPattern))
    throw refusal('invalid_scope', 'scope', 'must be permission patterns such as chat:write, separated by spaces.');
  return [...patterns];
}

function refusal(code: ErrorCode, param: Name, sentence: string): Refusal {
  return new Refusal(code, `The parameter ${param} ${sentence}`, { param });
}
