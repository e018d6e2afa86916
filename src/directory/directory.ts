/** One configured directory, and what every question to it is made of. */

import { randomBytes } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { Fault } from '../domain/errors.ts';
import type { Connection } from './connection.ts';
import type { Entry } from './entry.ts';
import { type Servers, serversOf } from './failover.ts';
import { DirectoryFault } from './faults.ts';
import { hasNamesake } from './find-user.ts';
import { groupsOf, isSearchedByName } from './groups.ts';
import { type EntryIdentity, identify } from './identity.ts';
import type { DirectoryPerson } from './model.ts';
import { profileOf, rolesOf, tenantOf } from './person.ts';
import type { DirectorySettings } from './settings.ts';
import { type TypeTraits, typeFinder } from './types.ts';

export interface Directory {
  readonly settings: DirectorySettings;
  readonly servers: Servers;
  readonly typeOf: (connection: Connection) => Promise<TypeTraits>;
}

/** @throws Error when the configured CA is none */
export function makeDirectory(settings: DirectorySettings): Directory {
  // Reading the system's authorities takes a while: at the start, once, and only where they are needed.
  const usesTls = settings.startTls || settings.urls.some(({ secure }) => secure);
  const trust = usesTls ? createSecureContext(settings.ca === undefined ? {} : { ca: settings.ca }) : undefined;
  return { settings, servers: serversOf(settings, trust), typeOf: typeFinder(settings) };
}

/** Binds as the service account, where there is one. @throws Fault: that it cannot is no matter of who logs in */
export async function bindService(c: Connection, { serviceAccount }: DirectorySettings): Promise<void> {
  if (serviceAccount === undefined) return;
  const { code, text, policy } = await c.bind(serviceAccount.dn, serviceAccount.password);
  if (code === 0 && policy !== 'change_after_reset') return;
  const why = code === 0 ? 'its password must be changed' : `code ${code}${text === '' ? '' : `: ${text}`}`;
  throw new DirectoryFault(`${c.url.text}: the service account ${serviceAccount.dn} cannot bind: ${why}`, code);
}

/** A bind that cannot succeed, for a person who is not there: the answer takes as long as for one with another password. */
export async function bindNobody(c: Connection, { baseDn }: DirectorySettings): Promise<void> {
  const name = `cn=${randomBytes(8).toString('hex')}`;
  await c.bind(baseDn === '' ? name : `${name},${baseDn}`, randomBytes(12).toString('hex'));
}

export type PersonAnswer =
  | { readonly kind: 'person'; readonly person: DirectoryPerson }
  | Extract<EntryIdentity, { readonly kind: 'refused' }>
  | { readonly kind: 'refused'; readonly reason: 'ambiguous_user'; readonly detail: string };

/** Reads the person that an entry identifies. @throws Fault when the entry shows no stable id, or when the groups cannot all be read */
export async function personOf(
  c: Connection,
  { settings }: Pick<Directory, 'settings'>,
  traits: TypeTraits,
  { entry, typed }: { readonly entry: Entry; readonly typed: string },
): Promise<PersonAnswer> {
  const identity = identify(entry, settings, traits);
  if (identity.kind === 'hidden') throw new Fault(`${c.url.text}: ${identity.detail}`);
  if (identity.kind === 'refused') return identity;
  const { account } = identity;
  const isNamed = account !== undefined && isSearchedByName(settings, traits);
  if (isNamed && (await hasNamesake(c, settings, traits, { dn: entry.dn, name: account }))) {
    return {
      kind: 'refused',
      reason: 'ambiguous_user',
      detail: `${entry.dn} is not the only entry with the user name ${account}`,
    };
  }
  const groups = await groupsOf({ c, settings, traits, account }, entry);
  const person: DirectoryPerson = {
    directory: settings.name,
    stableId: identity.stableId,
    dn: entry.dn,
    ...profileOf(entry, settings, traits, typed),
    groups,
    roles: rolesOf(groups, settings),
    tenantId: tenantOf(groups, settings),
  };
  return { kind: 'person', person };
}
