/** Errors of the token endpoint (RFC 6749, section 5.2), with the code, the status and the request id of a problem. */

import type { ErrorCode } from '../domain/errors.ts';
import type { ProblemDetails } from '../domain/problem-details.ts';

export const OAUTH_ERRORS = [
  'invalid_request',
  'invalid_grant',
  'invalid_scope',
  'invalid_target',
  'unsupported_grant_type',
  'temporarily_unavailable',
] as const;
type OAuthErrorName = (typeof OAUTH_ERRORS)[number];

export interface OAuthError extends Pick<ProblemDetails, 'code' | 'status' | 'request_id'> {
  readonly error: OAuthErrorName;
  readonly error_description: string;
}

/** Every other code is `invalid_request`, also that of a token that proves no principal (RFC 8693, section 2.2.2). */
const NAMES: { readonly [Code in ErrorCode]?: OAuthErrorName } = {
  invalid_scope: 'invalid_scope',
  invalid_target: 'invalid_target',
  unsupported_grant_type: 'unsupported_grant_type',
  tenant_suspended: 'invalid_grant',
  rate_limit_exceeded: 'temporarily_unavailable',
  too_many_attempts: 'temporarily_unavailable',
  unavailable: 'temporarily_unavailable',
};

export function oauthError({ code, detail, status, request_id }: ProblemDetails): OAuthError {
  return {
    error: NAMES[code] ?? 'invalid_request',
    error_description: descriptionOf(detail),
    code,
    status,
    request_id,
  };
}

/** The section permits printable ASCII except the quotation mark and the backslash. */
function descriptionOf(detail: string): string {
  return detail.replace(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, "'");
}
