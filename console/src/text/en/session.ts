import { counted } from './counted.ts';

/** Signing in and out, and what the caller may not do. */
export const session = {
  title: 'Sign in',
  enter: 'Enter',
  entering: 'Checking',
  kind: 'How you sign in',
  byPassword: 'Password',
  byDirectory: 'Directory',
  email: 'E-mail address',
  username: 'User name',
  usernameHint: 'As you sign in at work, such as alice or alice@corp.example.',
  password: 'Password',
  refused: 'This name and password do not go together. Both may be wrong.',
  locked: (seconds: number) =>
    `There were too many failed attempts. Try again in ${seconds < 90 ? counted(String(seconds), 'second') : `${Math.ceil(seconds / 60)} minutes`}, or ask an administrator to unlock the account.`,
  suspended: 'The tenant of this account is suspended. A platform administrator can activate it.',
  withIssuer: (label: string) => `Sign in with ${label}`,
  issuers: 'Sign in with your organization',
  or: 'or with a password',
  sso: {
    unknown_issuer: 'This way to sign in is not available. Choose another one, or ask an administrator.',
    expired: 'The sign-in took too long, or began in another browser. Sign in again.',
    denied: 'The provider did not sign you in.',
    invalid: 'The answer of the provider was not accepted. An administrator finds the reason in the audit log.',
    no_account: 'You have no active account here. An administrator can create one, or link yours to this sign-in.',
    email_in_use: 'Another account has your e-mail address. An administrator can link it to this sign-in.',
    tenant_suspended: 'The tenant of this account is suspended. A platform administrator can activate it.',
    too_many_attempts: 'There were too many attempts from your address. Try again in a few minutes.',
    unavailable: 'The provider does not respond. Try again later.',
  },
  over: {
    refused: 'Your session has ended. Sign in to go on where you were.',
    replaced: 'Another user signed in with this browser. Sign in to continue.',
    unconfirmed:
      'Postern did not confirm the sign-out, so the session of this browser may still be active. Sign in again, and end it under “Account and sessions”.',
  },
  denied: (permission: string) => `Needs ${permission}, which none of your roles gives.`,
  signOut: 'Sign out',
  signOutEverywhere: 'Sign out everywhere',
  notSignedOut:
    'You are not signed out. Sessions elsewhere may still be active. Try again, or sign out of this browser only.',
  account: 'Account and sessions',
} as const;
