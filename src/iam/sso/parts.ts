/** The parts of the console's login by an issuer. */

import type { IssuerUserAdmission } from '../../credential-cache/ports.ts';
import type { IssuerId, TenantId } from '../../domain/ids.ts';
import type { LoginOutcome } from '../../telemetry/login-metrics.ts';
import type { LoginParts } from '../auth/parts.ts';
import type { SsoProviders } from './provider.ts';
import type { SourceRate } from './source-rate.ts';

export const SIGN_IN = '/console/sign-in';

export interface SsoSettings {
  /** `console.sso.only`: the console hides the form for passwords. */
  readonly only: boolean;
  /** One for each process, as the following. */
  readonly providers: SsoProviders;
  readonly users: IssuerUserAdmission;
  /** The logins that addresses begin. */
  readonly starts: SourceRate;
  /** The logout tokens of addresses that were rejected. */
  readonly rejectedLogouts: SourceRate;
  /** Fetches the keys of an issuer again. Resolves also if that failed. */
  readonly refreshKeys: (issuer: { readonly id: IssuerId; readonly tenantId: TenantId }) => Promise<void>;
}

export interface SsoParts extends LoginParts {
  /** `http.origins`. Undefined: the origin of the Host header. */
  readonly origins: readonly string[] | undefined;
  readonly onLogin?: (outcome: LoginOutcome) => void;
  readonly sso: SsoSettings;
}

/** Why a login failed, for the sign-in page. The audit log has the cause. */
export type SsoError =
  /** The issuer does not exist, is disabled, has no login, or belongs to another tenant. */
  | 'unknown_issuer'
  /** The browser did not begin this login, or began it more than 10 min ago, or it was finished before. */
  | 'expired'
  /** The provider did not log the user in, or logged it out again. */
  | 'denied'
  /** The answer of the provider is not valid, or not sufficient. */
  | 'invalid'
  /** The provider's user has no active user here. */
  | 'no_account'
  | 'email_in_use'
  | 'tenant_suspended'
  | 'too_many_attempts'
  /** The provider does not respond. */
  | 'unavailable';
