/** One configured directory, and the steps that logins, lookups and tests share. */

import { randomBytes } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { Fault } from '../domain/errors.ts';
import type { LdapConnection } from './connection.ts';
import type { LdapEntry } from './entry.ts';
import { type Servers, serversOf } from './failover.ts';
import { DirectoryFault } from './faults.ts';
import { hasNamesake } from './find-user.ts';
import { groupsOf, isSearchedByName } from './groups.ts';
import type { DirectoryPerson } from './model.ts';
import {
  type DirectoryProfile,
  type EntryIdentity,
  identify,
  mapGroupsToRoles,
  mapGroupsToTenant,
  profileOf,
} from './person.ts';
import type { DirectorySettings } from './settings.ts';
import { typeFinder } from './types.ts';

/** An open connection to a directory whose type is known. */
export interface DirectoryReader extends DirectoryProfile {
  readonly c: LdapConnection;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

export interface Directory {
  readonly settings: DirectorySettings;
  readonly servers: Servers;
  /** Finds out the directory's type, if it is not known. Throws a Fault if the server does not report it. */
  readonly readerOn: (c: LdapConnection) => Promise<DirectoryReader>;
}

/** @throws Error if the configured CA is invalid */
export function makeDirectory(settings: DirectorySettings, now: () => number): Directory {
  // Node takes long to read the system's authorities, so they are read once, at the start, and only if TLS is used.
  const usesTls = settings.startTls || settings.urls.some(({ secure }) => secure);
  const trust = usesTls ? createSecureContext(settings.ca === undefined ? {} : { ca: settings.ca }) : undefined;
  const typeOf = typeFinder(settings);
  return {
    settings,
    servers: serversOf(settings, trust),
    readerOn: async (c) => ({ c, settings, now, traits: await typeOf(c) }),
  };
}

/**
 * Binds as the service account, if there is one.
 * @throws Fault if it cannot bind, because that does not depend on the person
 */
export async function bindService(c: LdapConnection, { serviceAccount }: DirectorySettings): Promise<void> {
  if (serviceAccount === undefined) return;
  const { code, text, policy } = await c.bind(serviceAccount.dn, serviceAccount.password);
  if (code === 0 && policy !== 'change_after_reset') return;
  const why = code === 0 ? 'its password must be changed' : `code ${code}${text === '' ? '' : `: ${text}`}`;
  throw new DirectoryFault(`${c.url.text}: the service account ${serviceAccount.dn} cannot bind: ${why}`, code);
}

/** Sends a bind that cannot succeed, so that the answer for an unknown person takes as long as for a wrong password. */
export async function bindNobody(c: LdapConnection, { baseDn }: DirectorySettings): Promise<void> {
  const name = `cn=${randomBytes(8).toString('hex')}`;
  await c.bind(baseDn === '' ? name : `${name},${baseDn}`, randomBytes(12).toString('hex'));
}

export type PersonAnswer =
  | { readonly kind: 'person'; readonly person: DirectoryPerson }
  | Extract<EntryIdentity, { readonly kind: 'refused' }>
  | { readonly kind: 'refused'; readonly reason: 'ambiguous_user'; readonly detail: string };

/**
 * Reads the person that an entry identifies.
 * @param typed the username if the entry shows none
 * @throws Fault if the entry shows no stable id, or if not all groups can be read
 */
export async function personOf(reader: DirectoryReader, entry: LdapEntry, typed: string): Promise<PersonAnswer> {
  const { c, settings } = reader;
  const identity = identify(entry, reader);
  if (identity.kind === 'hidden') throw new Fault(`${c.url.text}: ${identity.detail}`);
  if (identity.kind === 'refused') return identity;
  const { account, stableId } = identity;
  const isNamed = account !== undefined && isSearchedByName(reader);
  if (isNamed && (await hasNamesake(reader, { dn: entry.dn, name: account }))) {
    const detail = `${entry.dn} is not the only entry with the user name ${account}`;
    return { kind: 'refused', reason: 'ambiguous_user', detail };
  }
  const groups = await groupsOf({ ...reader, account }, entry);
  const person: DirectoryPerson = {
    directory: settings.name,
    stableId,
    dn: entry.dn,
    ...profileOf(entry, reader, typed),
    groups,
    roles: mapGroupsToRoles(groups, settings),
    tenantId: mapGroupsToTenant(groups, settings),
  };
  return { kind: 'person', person };
}
