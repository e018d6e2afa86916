/** Looks up a person that the directory proved earlier, without that person's password. */

import { PresenceFilter } from 'ldapts';
import { Fault } from '../domain/errors.ts';
import { type AccountState, accountState, type PolicyTimes } from './account-state.ts';
import type { LdapConnection } from './connection.ts';
import type { Deadline } from './deadline.ts';
import { bindService, type Directory, type DirectoryReader, personOf } from './directory.ts';
import { normaliseDn } from './dn.ts';
import { firstText, integerOf, type LdapEntry } from './entry.ts';
import { anyOf, hasAnyForm } from './filter.ts';
import { admittedBy, isUnreadable, userById } from './find-user.ts';
import { idFilter } from './ids.ts';
import type { LookupAnswer } from './model.ts';
import type { DirectorySettings } from './settings.ts';

const GONE = {
  disabled: 'disabled',
  expired: 'expired',
  locked: 'locked',
  password_expired: 'expired',
} as const satisfies Record<Exclude<AccountState, 'usable'>, string>;

/** @throws Fault, also if the directory's answer does not distinguish a removed person from a hidden one */
export async function lookUpPerson(directory: Directory, stableId: string, deadline: Deadline): Promise<LookupAnswer> {
  const { settings, servers } = directory;
  const c = await servers.open(deadline, (opened) => bindService(opened, settings));
  try {
    return await answer(await directory.readerOn(c), stableId);
  } catch (error) {
    // Without a service account, a directory that hides people from anonymous readers is not at fault.
    if (settings.serviceAccount === undefined && isUnreadable(error)) return { kind: 'gone', reason: 'not_readable' };
    throw error;
  } finally {
    c.close();
  }
}

async function answer(reader: DirectoryReader, stableId: string): Promise<LookupAnswer> {
  const { c, settings } = reader;
  const found = await userById(reader, stableId);
  if (found.kind === 'several') throw new Fault(`${c.url.text}: several entries have the id ${stableId}`);
  if (found.kind === 'none') {
    if (settings.serviceAccount === undefined) return { kind: 'gone', reason: 'not_readable' };
    await assertRemoved(reader, stableId);
    return { kind: 'gone', reason: 'removed' };
  }
  const state = accountState(found.entry, reader.now(), await policyOf(c, found.entry));
  if (state !== 'usable') return { kind: 'gone', reason: GONE[state] };
  const read = await personOf(reader, found.entry, '');
  return read.kind === 'person' ? { kind: 'found', person: read.person } : { kind: 'gone', reason: read.reason };
}

/** Reads the duration of OpenLDAP's locks, if the entry is locked and names its policy. */
async function policyOf(c: LdapConnection, entry: LdapEntry): Promise<PolicyTimes | undefined> {
  const base = firstText(entry, 'pwdPolicySubentry');
  if (base === undefined || firstText(entry, 'pwdAccountLockedTime') === undefined) return undefined;
  try {
    const search = { base, scope: 'base', filter: '(objectClass=*)', attributes: ['pwdLockoutDuration'] } as const;
    const [policy] = await c.search(search, 1);
    const seconds = policy && integerOf(policy, 'pwdLockoutDuration');
    return seconds === undefined || seconds <= 0n ? undefined : { lockoutSeconds: Number(seconds) };
  } catch (error) {
    if (isUnreadable(error)) return undefined;
    throw error;
  }
}

const ACCOUNT_NAMES = ['userPrincipalName', 'sAMAccountName'];

/**
 * Verifies that a person is removed whom a search did not find. A directory gives the same answer to a search that may
 * not see the person, or that ended early. So this searches again in a way that shows a partial answer, for the search
 * base, and for any other person.
 * @throws Fault unless all three answers show that the person is removed
 */
async function assertRemoved(reader: DirectoryReader, stableId: string): Promise<void> {
  const { c, settings, traits } = reader;
  const base = settings.userSearchBase ?? settings.baseDn;
  const byId = idFilter(stableId);
  if (byId === undefined) throw new Fault('the stored id of a directory user is not an id');
  const filter = admittedBy(settings, byId);
  const { entries, references } = await c.count({ base, scope: 'sub', filter, attributes: ['objectClass'] });
  if (entries > 0) throw unproved(c, 'the directory answers the same search differently');
  // Active Directory refers to its other naming contexts in every answer below a domain. Elsewhere the person may be
  // behind a reference.
  if (references > 0 && traits.type !== 'active-directory') {
    throw unproved(c, `a part of the tree below ${base} is on another server, and referrals are not followed`);
  }
  const anything = new PresenceFilter({ attribute: 'objectClass' });
  const [root] = await c.search({ base, scope: 'base', filter: anything, attributes: ['objectClass'] }, 1);
  if (root === undefined) throw unproved(c, `the service account cannot read the search base ${base}`);
  // Two entries, because one of them may be the service account.
  const others = await c.search({ base, scope: 'sub', filter: anyPerson(reader), attributes: ACCOUNT_NAMES }, 2);
  if (others.every((entry) => isServiceAccount(entry, settings))) {
    throw unproved(c, `the service account sees no other person below ${base}`);
  }
}

function unproved(c: LdapConnection, why: string): Fault {
  return new Fault(`${c.url.text}: a person was not found, and is not taken for removed: ${why}`);
}

/** Returns a filter that finds every person that the user search filter can find. */
function anyPerson({ settings: { userSearchFilter }, traits: { userFilter } }: DirectoryReader): string {
  return anyOf(userSearchFilter !== undefined && hasAnyForm(userSearchFilter) ? userSearchFilter : userFilter);
}

/** The configured name of the service account is a DN, `name@domain` or `DOMAIN\name`. */
function isServiceAccount(entry: LdapEntry, { serviceAccount }: DirectorySettings): boolean {
  const name = serviceAccount?.dn.toLowerCase() ?? '';
  const dn = normaliseDn(name);
  if (dn !== undefined && dn === normaliseDn(entry.dn)) return true;
  if (firstText(entry, 'userPrincipalName')?.toLowerCase() === name) return true;
  const account = firstText(entry, 'sAMAccountName')?.toLowerCase();
  return account !== undefined && name.endsWith(`\\${account}`);
}
