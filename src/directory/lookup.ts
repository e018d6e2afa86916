/** What a directory says now of a person whom it proved earlier, without that person's password. */

import { Fault } from '../domain/errors.ts';
import { type AccountState, accountState, type PolicyTimes } from './account-state.ts';
import type { Connection } from './connection.ts';
import type { Deadline } from './deadline.ts';
import { bindService, type Directory, personOf } from './directory.ts';
import { type Entry, firstText, numberOf } from './entry.ts';
import { isUnreadable, userById } from './find-user.ts';
import type { LookupAnswer } from './model.ts';
import { assertRemoved } from './removal.ts';

const GONE = {
  disabled: 'disabled',
  expired: 'expired',
  locked: 'locked',
  password_expired: 'expired',
} as const satisfies Record<Exclude<AccountState, 'usable'>, string>;

/** @throws Fault, also when the directory's answer does not tell a person who is removed from one whom it hides */
export async function lookUp(directory: Directory, stableId: string, deadline: Deadline): Promise<LookupAnswer> {
  const { settings, servers } = directory;
  const c = await servers.open(deadline, (opened) => bindService(opened, settings));
  try {
    return await answer(c, directory, stableId);
  } catch (error) {
    // Nobody in particular asked: that the directory does not tell strangers is no fault of it.
    if (settings.serviceAccount === undefined && isUnreadable(error)) return { kind: 'gone', reason: 'not_readable' };
    throw error;
  } finally {
    c.close();
  }
}

async function answer(c: Connection, directory: Directory, stableId: string): Promise<LookupAnswer> {
  const { settings } = directory;
  const traits = await directory.typeOf(c);
  const found = await userById(c, settings, traits, stableId);
  if (found.kind === 'several') throw new Fault(`${c.url.text}: several entries have the id ${stableId}`);
  if (found.kind === 'none') {
    if (settings.serviceAccount === undefined) return { kind: 'gone', reason: 'not_readable' };
    await assertRemoved(c, settings, traits, stableId);
    return { kind: 'gone', reason: 'removed' };
  }
  const state = accountState(found.entry, Date.now(), await policyOf(c, found.entry));
  if (state !== 'usable') return { kind: 'gone', reason: GONE[state] };
  const read = await personOf(c, directory, traits, { entry: found.entry, typed: '' });
  return read.kind === 'person' ? { kind: 'found', person: read.person } : { kind: 'gone', reason: read.reason };
}

/** How long OpenLDAP's locks last, where the entry is locked and names its policy. */
async function policyOf(c: Connection, entry: Entry): Promise<PolicyTimes | undefined> {
  const base = firstText(entry, 'pwdPolicySubentry');
  if (base === undefined || firstText(entry, 'pwdAccountLockedTime') === undefined) return undefined;
  try {
    const question = { base, scope: 'base', filter: '(objectClass=*)', attributes: ['pwdLockoutDuration'] } as const;
    const [policy] = await c.search(question, 1);
    const seconds = policy && numberOf(policy, 'pwdLockoutDuration');
    return seconds === undefined || seconds <= 0n ? undefined : { lockoutSeconds: Number(seconds) };
  } catch (error) {
    if (isUnreadable(error)) return undefined;
    throw error;
  }
}
