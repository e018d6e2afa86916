/** A login at one directory, on one connection: the service account finds the person, and the person binds. */

import { Fault } from '../domain/errors.ts';
import { present } from '../domain/objects.ts';
import { statePerBind, unreportedState } from './account-state.ts';
import { type BindOutcome, bindOutcome } from './bind-outcome.ts';
import type { LdapConnection } from './connection.ts';
import type { Deadline } from './deadline.ts';
import {
  bindNobody,
  bindService,
  type Directory,
  type DirectoryReader,
  type PersonAnswer,
  personOf,
} from './directory.ts';
import type { LdapEntry } from './entry.ts';
import { type BoundEntry, boundUser, type FoundEntry, isUnreadable, searchUser } from './find-user.ts';
import { needsReading } from './groups.ts';
import { readId } from './ids.ts';
import type { DirectoryAnswer, DirectoryReason } from './model.ts';
import { fillPattern, isDnPattern, isExact, type TypedName, typedName } from './user-name.ts';

interface LoginAnswer {
  readonly answer: DirectoryAnswer;
  /**
   * Whether the next directory may be tried: the search found no person with this name, and no server received the
   * password.
   */
  readonly elsewhere: boolean;
}

/** @param input neither is empty @throws Fault */
export async function logIn(
  directory: Directory,
  { username, password }: { readonly username: string; readonly password: string },
  deadline: Deadline,
): Promise<LoginAnswer> {
  const { settings, servers } = directory;
  const user = typedName(username, settings.domains);
  if (settings.userDnPattern === undefined) {
    const c = await servers.open(deadline, (opened) => bindService(opened, settings));
    return closing(c, () => findAndBind(c, directory, user, password));
  }
  const name = fillPattern(settings.userDnPattern, user.name);
  if (name === undefined) return refused(directory, 'invalid_username', { elsewhere: true });
  const c = await servers.open(deadline, () => Promise.resolve());
  return closing(c, () => bindAndFind(c, directory, { user, name, password }));
}

async function closing<T>(c: LdapConnection, use: () => Promise<T>): Promise<T> {
  try {
    return await use();
  } finally {
    c.close();
  }
}

async function findAndBind(
  c: LdapConnection,
  directory: Directory,
  user: TypedName,
  password: string,
): Promise<LoginAnswer> {
  const reader = await directory.readerOn(c);
  const found = await searchUser(reader, user);
  if (found.kind !== 'one' || !isExact(user.name)) {
    await bindNobody(c, directory.settings);
    return found.kind === 'several'
      ? refused(directory, 'ambiguous_user')
      : refused(directory, 'unknown_user', { elsewhere: true });
  }
  const outcome = outcomeFor(reader, found.entry, bindOutcome(await c.bind(found.entry.dn, password)));
  return conclude(reader, { outcome, user, found });
}

/**
 * Returns the outcome of a bind as the bound entry explains it. By default, OpenLDAP answers for a locked or expired
 * account as for a wrong password, and only the entry shows the reason.
 */
export function outcomeFor({ now }: Pick<DirectoryReader, 'now'>, entry: LdapEntry, outcome: BindOutcome): BindOutcome {
  const isSilent = outcome.kind === 'refused' && outcome.reason === 'wrong_password';
  const state = isSilent ? unreportedState(entry, now()) : undefined;
  return state === undefined ? outcome : { kind: 'refused', reason: state };
}

interface PatternBind {
  readonly user: TypedName;
  /** The name with which the pattern binds. */
  readonly name: string;
  readonly password: string;
}

async function bindAndFind(
  c: LdapConnection,
  directory: Directory,
  { user, name, password }: PatternBind,
): Promise<LoginAnswer> {
  const outcome = bindOutcome(await c.bind(name, password));
  if (outcome.kind === 'refused') return refused(directory, outcome.reason);
  if (outcome.kind === 'fault') throw new Fault(`${c.url.text}: ${outcome.detail}`);
  if (!isExact(user.name)) return refused(directory, 'unknown_user');
  const { found, reader } = await readBound(c, directory, { name, password, outcome: outcome.kind });
  if (found.kind === 'other_domain') return refused(directory, 'other_domain', { detail: found.detail });
  return conclude(reader, { outcome, user, found });
}

interface BoundAs {
  readonly name: string;
  readonly password: string;
  readonly outcome: 'proved' | 'password_expired';
}

interface ReadBound {
  readonly found: BoundEntry;
  readonly reader: DirectoryReader;
}

/**
 * Reads the entry of the account that was bound by the pattern. If the server does not report which account that is,
 * the found entry must have the same password, because the name may belong to another person in another domain.
 */
export async function readBound(c: LdapConnection, directory: Directory, bound: BoundAs): Promise<ReadBound> {
  const { found, reader } = await findBound(c, directory, bound);
  if (found.kind !== 'one' || found.isConfirmed) return { found, reader };
  const again = bindOutcome(await c.bind(found.entry.dn, bound.password));
  if (again.kind === 'fault') throw new Fault(`${c.url.text}: ${again.detail}`);
  if (again.kind === bound.outcome) return { found, reader };
  const detail = `the directory authenticates ${bound.name}, and not ${found.entry.dn} with the same password`;
  return { found: { kind: 'other_domain', detail }, reader };
}

/**
 * Reads the entry as the person; as the service account if the person may not read, for example before a required
 * password change.
 */
async function findBound(c: LdapConnection, directory: Directory, { name, outcome }: BoundAs): Promise<ReadBound> {
  const { settings } = directory;
  const asksWho = outcome === 'proved' && !isDnPattern(settings.userDnPattern ?? '');
  let authorization: string | undefined;
  try {
    authorization = asksWho ? await c.whoAmI() : undefined;
    const reader = await directory.readerOn(c);
    const found = await boundUser(reader, { name, authorization });
    if (found.kind !== 'none' || settings.serviceAccount === undefined) return { found, reader };
  } catch (error) {
    if (!isUnreadable(error)) throw error;
  }
  await bindService(c, settings);
  const reader = await directory.readerOn(c);
  if (settings.serviceAccount === undefined) return { found: { kind: 'none' }, reader };
  return { found: await boundUser(reader, { name, authorization }), reader };
}

interface FoundUser {
  readonly user: TypedName;
  readonly found: FoundEntry;
}

async function conclude(
  reader: DirectoryReader,
  { outcome, user, found }: FoundUser & { readonly outcome: BindOutcome },
): Promise<LoginAnswer> {
  switch (outcome.kind) {
    case 'fault':
      throw new Fault(`${reader.c.url.text}: ${outcome.detail}`);
    case 'refused':
      return refused(reader, outcome.reason, { stableId: suspendedId(outcome.reason, found, reader) });
    case 'password_expired':
      return passwordExpired(reader, { user, found }, outcome.reason);
    case 'proved':
      return proved(reader, { user, found });
    default:
      return outcome satisfies never;
  }
}

async function proved(reader: DirectoryReader, { user, found }: FoundUser): Promise<LoginAnswer> {
  if (found.kind === 'several') return refused(reader, 'ambiguous_user');
  if (found.kind === 'none') {
    // The configured filter may exclude the person that is bound.
    if (reader.settings.userSearchFilter !== undefined) return refused(reader, 'refused');
    throw new Fault(
      `${reader.c.url.text}: somebody could bind, and the entry cannot be found: neither by that person nor by the service account`,
    );
  }
  const state = statePerBind(found.entry, reader.now());
  if (state === 'disabled' || state === 'expired')
    return refused(reader, state, { stableId: suspendedId(state, found, reader) });
  if (state === 'password_expired') return passwordExpired(reader, { user, found }, 'expired');
  const read = await readPerson(reader, found.entry, user);
  if (read.kind === 'refused') return refused(reader, read.reason, { detail: read.detail });
  return { answer: { kind: 'proved', person: read.person }, elsewhere: false };
}

/**
 * The service account, if there is one, reads the groups. A refresh reads them in the same way, so that both see the
 * same groups.
 */
async function readPerson(reader: DirectoryReader, entry: LdapEntry, user: TypedName): Promise<PersonAnswer> {
  if (needsReading(reader, entry)) await bindService(reader.c, reader.settings);
  return personOf(reader, entry, user.name);
}

async function passwordExpired(
  reader: DirectoryReader,
  { user, found }: FoundUser,
  reason: 'expired' | 'must_change',
): Promise<LoginAnswer> {
  const { name, serviceAccount } = reader.settings;
  const answer: DirectoryAnswer = { kind: 'password_expired', reason, directory: name };
  if (found.kind !== 'one' || serviceAccount === undefined) return { answer, elsewhere: false };
  try {
    const read = await readPerson(reader, found.entry, user);
    return { answer: read.kind === 'person' ? { ...answer, person: read.person } : answer, elsewhere: false };
  } catch (error) {
    // The answer is complete without the person.
    if (error instanceof Fault) return { answer, elsewhere: false };
    throw error;
  }
}

/** Returns the id of the account if its own state is the reason; undefined for every other reason. */
function suspendedId(reason: DirectoryReason, found: FoundEntry, { traits }: DirectoryReader): string | undefined {
  if ((reason !== 'disabled' && reason !== 'expired') || found.kind !== 'one') return undefined;
  const id = readId(found.entry, traits.id);
  return id.kind === 'one' ? id.stableId : undefined;
}

interface RefusalDetails {
  /** Default: false. */
  readonly elsewhere?: boolean;
  /** The id of the account that was read, if its state is the reason. */
  readonly stableId?: string | undefined;
  /** Information for administrators, without secrets. */
  readonly detail?: string | undefined;
}

function refused(
  { settings }: Pick<Directory, 'settings'>,
  reason: DirectoryReason,
  { elsewhere = false, stableId, detail }: RefusalDetails = {},
): LoginAnswer {
  return {
    answer: { kind: 'refused', reason, directory: settings.name, ...present({ stableId, detail }) },
    elsewhere,
  };
}
