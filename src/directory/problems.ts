/** Warnings about valid configurations of directories, for administrators. */

import { isLoopbackAddress } from '../decision/address.ts';
import type { DirectorySettings } from './settings.ts';

export function problemsOf(settings: DirectorySettings): readonly string[] {
  const clear = settings.urls.filter(({ secure, host }) => !secure && !settings.startTls && !isLoopback(host));
  const inClear = clear.map(
    ({ text }) =>
      `The directory ${settings.name} is asked at ${text} in clear, so passwords can be read on the way. Use ldaps://, or set ldap.start-tls.`,
  );
  const alone =
    settings.serviceAccount === undefined
      ? [
          `The directory ${settings.name} has no service account: what it does not show to strangers cannot be seen when a token is refreshed, and the refresh is refused; owners of keys are not looked up daily. Set ldap.bind-dn and ldap.bind-password.`,
        ]
      : [];
  const ownDomain = settings.userDnPattern?.startsWith('{0}@') === true && settings.domains.length === 0;
  const domainless = ownDomain
    ? [
        `The directory ${settings.name} binds people by a pattern without ldap.domain: Active Directory names the accounts that it authenticates by their NetBIOS domain, and an account of a domain that is not listed is refused. Set ldap.domain to both names of the domain, such as [corp.example, CORP].`,
      ]
    : [];
  return [...inClear, ...alone, ...domainless];
}

export function problemsTogether(all: readonly DirectorySettings[]): readonly string[] {
  const open = all.filter(({ namesWithoutDomain }) => namesWithoutDomain).map(({ name }) => name);
  return all.length > 1 && open.length > 1
    ? [
        `Names without a domain are searched in the directories ${open.join(', ')} in turn: each of them can claim a name of the next, and then gets the password. Leave ldap.names-without-domain to one directory.`,
      ]
    : [];
}

function isLoopback(host: string): boolean {
  return /^(?:.+\.)?localhost\.?$/i.test(host) || isLoopbackAddress(host);
}
