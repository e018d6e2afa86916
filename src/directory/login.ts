/** A login at one directory: one connection, on which the service account finds and the person proves. */

import { Fault } from '../domain/errors.ts';
import { statePerBind, stateUntold } from './account-state.ts';
import { type BindOutcome, bindOutcome } from './bind-outcome.ts';
import type { Connection } from './connection.ts';
import type { Deadline } from './deadline.ts';
import { bindNobody, bindService, type Directory, type PersonAnswer, personOf } from './directory.ts';
import type { Entry } from './entry.ts';
import { type BoundFound, boundUser, type Found, isUnreadable, searchUser } from './find-user.ts';
import { needsReading } from './groups.ts';
import { readId } from './ids.ts';
import type { DirectoryAnswer, DirectoryReason } from './model.ts';
import type { TypeTraits } from './types.ts';
import { fillPattern, isDnPattern, isExact, type TypedName, typedName } from './user-name.ts';

export interface LoginAnswer {
  readonly answer: DirectoryAnswer;
  /** Whether another directory may be asked: the search found nobody with this name, and the password has been sent to no server. */
  readonly elsewhere: boolean;
}

/** @param input neither is empty @throws Fault */
export async function logIn(
  directory: Directory,
  input: { readonly username: string; readonly password: string },
  deadline: Deadline,
): Promise<LoginAnswer> {
  const { settings, servers } = directory;
  const user = typedName(input.username, settings.domains);
  if (settings.userDnPattern === undefined) {
    const c = await servers.open(deadline, (opened) => bindService(opened, settings));
    return closing(c, () => findAndBind(c, directory, user, input.password));
  }
  const name = fillPattern(settings.userDnPattern, user.name);
  if (name === undefined) return refused(directory, 'invalid_username', true);
  const c = await servers.open(deadline, () => Promise.resolve());
  return closing(c, () => bindAndFind(c, directory, { user, name }, input.password));
}

async function closing<T>(c: Connection, use: () => Promise<T>): Promise<T> {
  try {
    return await use();
  } finally {
    c.close();
  }
}

async function findAndBind(
  c: Connection,
  directory: Directory,
  user: TypedName,
  password: string,
): Promise<LoginAnswer> {
  const { settings } = directory;
  const traits = await directory.typeOf(c);
  const found = await searchUser(c, settings, traits, user);
  if (found.kind !== 'one' || !isExact(user.name)) {
    await bindNobody(c, settings);
    return found.kind !== 'several'
      ? refused(directory, 'unknown_user', true)
      : refused(directory, 'ambiguous_user', false);
  }
  const outcome = outcomeFor(found.entry, bindOutcome(await c.bind(found.entry.dn, password)));
  return concluded(c, directory, traits, { outcome, user, found });
}

/**
 * Returns the outcome of a bind as the bound entry explains it: by default, OpenLDAP answers for a locked or expired account as for a wrong
 * password, and only the entry shows the reason.
 */
export function outcomeFor(entry: Entry, outcome: BindOutcome): BindOutcome {
  const isSilent = outcome.kind === 'refused' && outcome.reason === 'wrong_password';
  const state = isSilent ? stateUntold(entry, Date.now()) : undefined;
  return state === undefined ? outcome : { kind: 'refused', reason: state };
}

async function bindAndFind(
  c: Connection,
  directory: Directory,
  { user, name }: { readonly user: TypedName; readonly name: string },
  password: string,
): Promise<LoginAnswer> {
  const outcome = bindOutcome(await c.bind(name, password));
  if (outcome.kind === 'refused') return refused(directory, outcome.reason, false);
  if (outcome.kind === 'fault') throw new Fault(`${c.url.text}: ${outcome.detail}`);
  if (!isExact(user.name)) return refused(directory, 'unknown_user', false);
  const { found, traits } = await readBound(c, directory, { name, password, outcome: outcome.kind });
  if (found.kind === 'other_domain') return refused(directory, 'other_domain', false, { detail: found.detail });
  return concluded(c, directory, traits, { outcome, user, found });
}

interface BoundAs {
  readonly name: string;
  readonly password: string;
  readonly outcome: 'proved' | 'password_expired';
}

/**
 * The entry of the account that was bound by the pattern. When the server does not say which account that is, the password must be that of
 * the entry found too: the same name may be another person's in another domain.
 */
export async function readBound(
  c: Connection,
  directory: Directory,
  bound: BoundAs,
): Promise<{ readonly found: BoundFound; readonly traits: TypeTraits }> {
  const { found, traits } = await findBound(c, directory, bound);
  if (found.kind !== 'one' || found.isSaid) return { found, traits };
  const again = bindOutcome(await c.bind(found.entry.dn, bound.password));
  if (again.kind === 'fault') throw new Fault(`${c.url.text}: ${again.detail}`);
  if (again.kind === bound.outcome) return { found, traits };
  const detail = `the directory authenticates ${bound.name}, and not ${found.entry.dn} with the same password`;
  return { found: { kind: 'other_domain', detail }, traits };
}

/** Read by the person; by the service account where that shows nothing, as with a password that must be changed first. */
async function findBound(
  c: Connection,
  directory: Directory,
  { name, outcome }: BoundAs,
): Promise<{ readonly found: BoundFound; readonly traits: TypeTraits }> {
  const { settings } = directory;
  const isAsked = outcome === 'proved' && !isDnPattern(settings.userDnPattern ?? '');
  let authorization: string | undefined;
  try {
    authorization = isAsked ? await c.whoAmI() : undefined;
    const traits = await directory.typeOf(c);
    const found = await boundUser(c, settings, traits, { name, authorization });
    if (found.kind !== 'none' || settings.serviceAccount === undefined) return { found, traits };
  } catch (error) {
    if (!isUnreadable(error)) throw error;
  }
  await bindService(c, settings);
  const traits = await directory.typeOf(c);
  if (settings.serviceAccount === undefined) return { found: { kind: 'none' }, traits };
  return { found: await boundUser(c, settings, traits, { name, authorization }), traits };
}

interface Read {
  readonly user: TypedName;
  readonly found: Found;
}

interface Bound extends Read {
  readonly outcome: BindOutcome;
}

async function concluded(
  c: Connection,
  directory: Directory,
  traits: TypeTraits,
  { outcome, user, found }: Bound,
): Promise<LoginAnswer> {
  switch (outcome.kind) {
    case 'fault':
      throw new Fault(`${c.url.text}: ${outcome.detail}`);
    case 'refused':
      return refused(directory, outcome.reason, false, { stableId: suspended(outcome.reason, found, traits) });
    case 'password_expired':
      return passwordExpired(c, directory, traits, { user, found, reason: outcome.reason });
    case 'proved':
      return proved(c, directory, traits, { user, found });
    default:
      return outcome satisfies never;
  }
}

async function proved(
  c: Connection,
  directory: Directory,
  traits: TypeTraits,
  { user, found }: Read,
): Promise<LoginAnswer> {
  if (found.kind === 'several') return refused(directory, 'ambiguous_user', false);
  if (found.kind === 'none') {
    // The one who bound may be one whom the configured filter leaves out.
    if (directory.settings.userSearchFilter !== undefined) return refused(directory, 'refused', false);
    throw new Fault(
      `${c.url.text}: somebody could bind, and the entry cannot be found: neither by that person nor by the service account`,
    );
  }
  const state = statePerBind(found.entry, Date.now());
  if (state === 'disabled' || state === 'expired')
    return refused(directory, state, false, { stableId: suspended(state, found, traits) });
  if (state === 'password_expired') return passwordExpired(c, directory, traits, { user, found, reason: 'expired' });
  const read = await readPerson(c, directory, traits, { entry: found.entry, typed: user.name });
  if (read.kind === 'refused') return refused(directory, read.reason, false, { detail: read.detail });
  return { answer: { kind: 'proved', person: read.person }, elsewhere: false };
}

/** Groups are read by the service account where there is one, as at a refresh, so that both see the same. */
async function readPerson(
  c: Connection,
  directory: Directory,
  traits: TypeTraits,
  who: { readonly entry: Entry; readonly typed: string },
): Promise<PersonAnswer> {
  if (needsReading(directory.settings, traits, who.entry)) await bindService(c, directory.settings);
  return personOf(c, directory, traits, who);
}

async function passwordExpired(
  c: Connection,
  directory: Directory,
  traits: TypeTraits,
  { user, found, reason }: Read & { readonly reason: 'expired' | 'must_change' },
): Promise<LoginAnswer> {
  const name = directory.settings.name;
  const answer: DirectoryAnswer = { kind: 'password_expired', reason, directory: name };
  if (found.kind !== 'one' || directory.settings.serviceAccount === undefined) return { answer, elsewhere: false };
  try {
    const read = await readPerson(c, directory, traits, { entry: found.entry, typed: user.name });
    return { answer: read.kind === 'person' ? { ...answer, person: read.person } : answer, elsewhere: false };
  } catch (error) {
    // Who it is only adds to the answer, which is known.
    if (error instanceof Fault) return { answer, elsewhere: false };
    throw error;
  }
}

/** The id of the account whose own state is the reason; undefined for every other reason. */
function suspended(reason: DirectoryReason, found: Found, { id: attribute }: TypeTraits): string | undefined {
  if ((reason !== 'disabled' && reason !== 'expired') || found.kind !== 'one') return undefined;
  const id = readId(found.entry, attribute);
  return id.kind === 'one' ? id.stableId : undefined;
}

interface RefusedBecause {
  /** Of the account that was read, if its state is the reason. */
  readonly stableId?: string | undefined;
  /** What an administrator should know about it, without secrets. */
  readonly detail?: string | undefined;
}

function refused(
  { settings }: Directory,
  reason: DirectoryReason,
  elsewhere: boolean,
  { stableId, detail }: RefusedBecause = {},
): LoginAnswer {
  const answer: DirectoryAnswer = {
    kind: 'refused',
    reason,
    directory: settings.name,
    ...(stableId === undefined ? {} : { stableId }),
    ...(detail === undefined ? {} : { detail }),
  };
  return { answer, elsewhere };
}
