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
    `There were too many failed attempts. Try again in ${seconds < 90 ? `${seconds} seconds` : `${Math.ceil(seconds / 60)} minutes`}, or ask an administrator to unlock the account.`,
  suspended: 'The tenant of this account is suspended. A platform administrator can activate it.',
  ended: 'Your session has ended. Sign in to go on where you were.',
  replaced: 'Somebody else signed in with this browser. Sign in to go on.',
  denied: (permission: string) => `Needs ${permission}, which none of your roles gives.`,
  signOut: 'Sign out',
  signOutEverywhere: 'Sign out everywhere',
  account: 'Account and sessions',
} as const;
