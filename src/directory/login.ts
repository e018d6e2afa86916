/** A login at one directory: one connection, on which the service account finds and the person proves. */

import { Fault } from '../domain/errors.ts';
import { statePerBind, stateUntold } from './account-state.ts';
import { type BindOutcome, bindOutcome } from './bind-outcome.ts';
import type { Connection } from './connection.ts';
import type { Deadline } from './deadline.ts';
import { bindNobody, bindService, type Directory, personOf } from './directory.ts';
import type { Entry } from './entry.ts';
import { boundUser, type Found, isUnreadable, searchUser } from './find-user.ts';
import { needsReading } from './groups.ts';
import { stableIdOf } from './ids.ts';
import type { DirectoryAnswer, DirectoryPerson, DirectoryReason } from './model.ts';
import type { TypeTraits } from './types.ts';
import { fillPattern, isDnPattern, isExact, type TypedName, typedName } from './user-name.ts';

export interface LoginAnswer {
  readonly answer: DirectoryAnswer;
  /** Whether the name may be that of somebody in another directory: here nobody was found by it. */
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

async function findAndBind(c: Connection, directory: Directory, user: TypedName, password: string): Promise<LoginAnswer> {
  const { settings } = directory;
  const traits = await directory.typeOf(c);
  const found = await searchUser(c, settings, traits, user);
  if (found.kind !== 'one' || !isExact(user.name)) {
    await bindNobody(c, settings);
    return found.kind !== 'several' ? refused(directory, 'unknown_user', true) : refused(directory, 'ambiguous_user', false);
  }
  const outcome = told(bindOutcome(await c.bind(found.entry.dn, password)), found.entry);
  return concluded(c, directory, traits, { outcome, user, found });
}

/** OpenLDAP answers for a locked or expired account as for a wrong password, unless it is told to say more; the entry shows it. */
function told(outcome: BindOutcome, entry: Entry): BindOutcome {
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
  // A bind says no to a wrong name and to a wrong password alike.
  const elsewhere = outcome.kind === 'refused' && ['wrong_password', 'unknown_user', 'invalid_username'].includes(outcome.reason);
  if (outcome.kind === 'refused') return refused(directory, outcome.reason, elsewhere);
  if (outcome.kind === 'fault') throw new Fault(`${c.url.text}: ${outcome.detail}`);
  if (!isExact(user.name)) return refused(directory, 'unknown_user', true);
  const { found, traits } = await readBound(c, directory, name);
  return concluded(c, directory, traits, { outcome, user, found });
}

/** Read by the person; by the service account where that shows nothing, as with a password that must be changed first. */
export async function readBound(
  c: Connection,
  directory: Directory,
  name: string,
): Promise<{ readonly found: Found; readonly traits: TypeTraits }> {
  const { settings } = directory;
  const isDn = isDnPattern(settings.userDnPattern ?? '');
  let authorization: string | undefined;
  try {
    authorization = isDn ? undefined : await c.whoAmI();
    const traits = await directory.typeOf(c);
    const found = await boundUser(c, settings, traits, { name, authorization });
    if (found.kind === 'one' || settings.serviceAccount === undefined) return { found, traits };
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
      return refused(directory, outcome.reason, false, found);
    case 'password_expired':
      return passwordExpired(c, directory, traits, { user, found, reason: outcome.reason });
    case 'proved':
      return proved(c, directory, traits, { user, found });
    default:
      return outcome satisfies never;
  }
}

async function proved(c: Connection, directory: Directory, traits: TypeTraits, { user, found }: Read): Promise<LoginAnswer> {
  if (found.kind === 'several') return refused(directory, 'ambiguous_user', false);
  if (found.kind === 'none') {
    // The one who bound may be one whom the configured filter leaves out.
    if (directory.settings.userSearchFilter !== undefined) return refused(directory, 'refused', false);
    throw new Fault(
      `${c.url.text}: somebody could bind, and the entry cannot be found: neither by that person nor by the service account`,
    );
  }
  const state = statePerBind(found.entry, Date.now());
  if (state === 'disabled' || state === 'expired') return refused(directory, state, false, found);
  if (state === 'password_expired') return passwordExpired(c, directory, traits, { user, found, reason: 'expired' });
  const person = await read(c, directory, traits, { entry: found.entry, typed: user.name });
  return { answer: { kind: 'proved', person }, elsewhere: false };
}

/** Groups are read by the service account where there is one, as at a refresh, so that both see the same. */
async function read(
  c: Connection,
  directory: Directory,
  traits: TypeTraits,
  who: { readonly entry: Entry; readonly typed: string },
): Promise<DirectoryPerson> {
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
    const person = await read(c, directory, traits, { entry: found.entry, typed: user.name });
    return { answer: { ...answer, person }, elsewhere: false };
  } catch (error) {
    // Who it is only adds to the answer, which is known.
    if (error instanceof Fault) return { answer, elsewhere: false };
    throw error;
  }
}

/** @param found the account that was read, if its state is the reason */
function refused({ settings }: Directory, reason: DirectoryReason, elsewhere: boolean, found?: Found): LoginAnswer {
  const ofAccount = (reason === 'disabled' || reason === 'expired') && found?.kind === 'one';
  const stableId = ofAccount ? stableIdOf(found.entry) : undefined;
  const answer = { kind: 'refused', reason, directory: settings.name, ...(stableId === undefined ? {} : { stableId }) } as const;
  return { answer, elsewhere };
}
