/**
 * Whether a person for whom a search found nothing is gone. A directory answers a search that may not see the person, or that stopped
 * early, like one for a person who is not there, so the rest of what the service account sees has to bear the answer out.
 */

import { PresenceFilter } from 'ldapts';
import { Fault } from '../domain/errors.ts';
import type { Connection } from './connection.ts';
import { normaliseDn } from './dn.ts';
import { type Entry, firstText } from './entry.ts';
import { anyOf, hasAnyForm } from './filter.ts';
import { admittedBy } from './find-user.ts';
import { idFilter } from './ids.ts';
import type { DirectorySettings } from './settings.ts';
import type { TypeTraits } from './types.ts';

/**
 * Asks again for the person, in a way that shows a partial answer, for the search base, and for any other person.
 * @throws Fault unless all three answers show that the person is gone
 */
export async function assertRemoved(
  c: Connection,
  settings: DirectorySettings,
  traits: TypeTraits,
  stableId: string,
): Promise<void> {
  const base = settings.userSearchBase ?? settings.baseDn;
  const byId = idFilter(stableId);
  if (byId === undefined) throw new Fault('what is kept as the id of a directory user is none');
  const question = { base, scope: 'sub', filter: admittedBy(settings, byId), attributes: ['objectClass'] } as const;
  const { entries, references } = await c.count(question);
  if (entries > 0) throw unproved(c, 'the directory answers the same search differently');
  // Active Directory refers to its other naming contexts in every answer below a domain. Elsewhere the person may be behind a reference.
  if (references > 0 && traits.type !== 'active-directory') {
    throw unproved(c, `a part of the tree below ${base} is on another server, and referrals are not followed`);
  }
  const anything = new PresenceFilter({ attribute: 'objectClass' });
  const [root] = await c.search({ base, scope: 'base', filter: anything, attributes: ['objectClass'] }, 1);
  if (root === undefined) throw unproved(c, `the service account cannot read the search base ${base}`);
  // One more than wanted, as the service account may be among those it sees.
  const others = await c.search(
    { base, scope: 'sub', filter: everybody(settings, traits), attributes: ACCOUNT_NAMES },
    2,
  );
  if (!others.some((entry) => !isServiceAccount(entry, settings))) {
    throw unproved(c, `the service account sees no other person below ${base}`);
  }
}

const ACCOUNT_NAMES = ['userPrincipalName', 'sAMAccountName'];

function unproved(c: Connection, why: string): Fault {
  return new Fault(`${c.url.text}: a person was not found, and is not taken for removed: ${why}`);
}

/** Whom the user search filter can find at all. */
function everybody({ userSearchFilter }: DirectorySettings, { userFilter }: TypeTraits): string {
  return anyOf(userSearchFilter !== undefined && hasAnyForm(userSearchFilter) ? userSearchFilter : userFilter);
}

/** By a DN, `name@domain` or `DOMAIN\name`, as the service account may be configured. */
function isServiceAccount(entry: Entry, { serviceAccount }: DirectorySettings): boolean {
  const name = serviceAccount?.dn.toLowerCase() ?? '';
  const dn = normaliseDn(name);
  if (dn !== undefined && dn === normaliseDn(entry.dn)) return true;
  if (firstText(entry, 'userPrincipalName')?.toLowerCase() === name) return true;
  const account = firstText(entry, 'sAMAccountName')?.toLowerCase();
  return account !== undefined && name.endsWith(`\\${account}`);
}
