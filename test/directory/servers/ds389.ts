/**
 * 389 Directory Server, as itself or with the tree and the schema of FreeIPA, which runs on it: people under
 * cn=users,cn=accounts with ipaUniqueID, groups of ipaUserGroup, nested memberOf and nsAccountLock. FreeIPA's own
 * plug-ins are not there.
 */

import { chown, copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Attribute, Change, Client } from 'ldapts';
import { freePort } from '../../support/ports.ts';
import { makeCertificates, type ServerFiles } from './certificates.ts';
import { fillDse, type Paths, pathsIn } from './dse.ts';
import { type Flavour, groupEntries, makeUuid, personEntries, salted } from './entries.ts';
import { type Entry, writable } from './ldif.ts';
import { type AccountState, PEOPLE, type Person, type Places, SERVICE_PASSWORD, uidDn } from './people.ts';
import { makeFolder, type Owner, removeFolder, startDaemon, tool, untilListening } from './processes.ts';
import type { DirectoryServer } from './server.ts';

const MANAGER = { dn: 'cn=Directory Manager', password: 'Manager-Pass1' };
/** The package's user: the server does not run as root. */
const USER = 'dirsrv';
const PACKAGE = '/usr/share/dirsrv/data';

export interface Ds389Options {
  readonly freeIpa?: boolean;
  /** Else an authority and a certificate for loopback of its own. */
  readonly certificates?: ServerFiles | undefined;
  /** Answers a bind without a password with success, as an anonymous one (RFC 4513, section 5.1.2). */
  readonly allowUnauthenticated?: boolean;
  /** True if people may write every attribute of their own entries that the schema permits. */
  readonly selfWrite?: boolean;
}

const PLAIN: Places = {
  suffix: 'dc=example,dc=org',
  people: 'ou=people,dc=example,dc=org',
  groups: 'ou=groups,dc=example,dc=org',
  large: 'ou=groups,dc=example,dc=org',
  elsewhere: 'ou=clubs,dc=example,dc=org',
  archive: 'ou=archive,dc=example,dc=org',
};
const FREEIPA: Places = {
  suffix: 'dc=ipa,dc=test',
  people: 'cn=users,cn=accounts,dc=ipa,dc=test',
  groups: 'cn=groups,cn=accounts,dc=ipa,dc=test',
  large: 'cn=groups,cn=accounts,dc=ipa,dc=test',
  elsewhere: 'cn=roles,cn=accounts,dc=ipa,dc=test',
  archive: 'cn=deleted users,cn=accounts,dc=ipa,dc=test',
};

/** FreeIPA's own attributes and object classes of users and groups: those that a login reads. */
const FREEIPA_SCHEMA = `dn: cn=schema
attributeTypes: ( 2.16.840.1.113730.3.8.3.1 NAME 'ipaUniqueID' EQUALITY caseIgnoreMatch ORDERING caseIgnoreOrderingMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )
objectClasses: ( 2.16.840.1.113730.3.8.4.12 NAME 'ipaObject' AUXILIARY MUST ( ipaUniqueID ) )
objectClasses: ( 2.16.840.1.113730.3.8.4.3 NAME 'nestedGroup' SUP groupOfNames STRUCTURAL MAY memberOf )
objectClasses: ( 2.16.840.1.113730.3.8.4.4 NAME 'ipaUserGroup' SUP nestedGroup STRUCTURAL )
`;

const LONG_AGO = '20200101000000Z';
/** By the password policy. The second is what the server writes when an administrator sets a password. */
const EXPIRES: Partial<Record<AccountState, string>> = { password_expired: LONG_AGO, must_change: '19700101000000Z' };

function stateAttributes(state: AccountState | undefined, places: Places, freeIpa: boolean): Entry['attributes'] {
  if (state === 'disabled') return { nsAccountLock: 'TRUE' };
  if (state !== 'account_expired') return {};
  // 389's by its Account Policy plug-in.
  return freeIpa
    ? { krbPrincipalExpiration: LONG_AGO }
    : { acctPolicySubentry: `cn=dormant,${places.suffix}`, lastLoginTime: LONG_AGO };
}

function flavour(freeIpa: boolean): Flavour {
  const places = freeIpa ? FREEIPA : PLAIN;
  const ofIpa = (): Entry['attributes'] => (freeIpa ? { ipaUniqueID: makeUuid() } : {});
  return {
    places,
    personClasses: ['nsMemberOf', ...(freeIpa ? ['inetUser', 'ipaObject', 'krbPrincipalAux'] : [])],
    groupClasses: ['nsMemberOf', ...(freeIpa ? ['nestedGroup', 'ipaUserGroup', 'ipaObject'] : [])],
    person: (one) => ({ ...ofIpa(), ...stateAttributes(one.state, places, freeIpa) }),
    group: ofIpa,
  };
}

export async function startDs389(options: Ds389Options = {}): Promise<DirectoryServer> {
  const folder = await makeFolder('389ds');
  try {
    return await start(folder, options);
  } catch (error) {
    await removeFolder(folder);
    throw error;
  }
}

async function start(folder: string, options: Ds389Options): Promise<DirectoryServer> {
  const { freeIpa = false, allowUnauthenticated = false } = options;
  const kind = flavour(freeIpa);
  const { places } = kind;
  const owner = await packageUser();
  const paths = pathsIn(folder);
  const [port, securePort] = [await freePort(), await freePort()];
  await Promise.all(
    [paths.schema, join(paths.database, 'userroot'), paths.logs, paths.run].map((path) =>
      mkdir(path, { recursive: true }),
    ),
  );
  const files = options.certificates ?? (await makeCertificates(folder));
  await writeConfiguration(paths, freeIpa);
  const template = await readFile(join(PACKAGE, 'template-dse.ldif'), 'utf8');
  const manager = { dn: MANAGER.dn, password: salted(MANAGER.password) };
  const dse = { paths, port, securePort, suffix: places.suffix, user: USER, manager, allowUnauthenticated };
  await writeFile(join(paths.config, 'dse.ldif'), fillDse(template, dse));
  await give(folder, owner);
  await storeCertificate(paths, files, owner);
  const daemon = startDaemon('ns-slapd', ['-D', paths.config, '-i', join(paths.run, 'pid'), '-d', '0'], { owner });
  const stop = async (): Promise<void> => {
    await daemon.stop();
    await removeFolder(folder);
  };
  const url = `ldap://127.0.0.1:${port}`;
  try {
    await untilListening(daemon, '127.0.0.1', port);
    await load(url, kind, options);
  } catch (error) {
    await daemon.stop();
    throw new Error(await errorLog(paths), { cause: error });
  }
  return {
    kind: freeIpa ? 'freeipa' : '389ds',
    title: freeIpa ? 'FreeIPA tree' : '389 DS',
    ...places,
    host: '127.0.0.1',
    port,
    url,
    secureUrl: `ldaps://127.0.0.1:${securePort}`,
    caFile: files.ca,
    service: { dn: serviceDn(places), password: SERVICE_PASSWORD },
    manager: MANAGER,
    log: () => readFile(join(paths.logs, 'access'), 'utf8'),
    stop,
  };
}

/** The last that the server wrote about itself. */
async function errorLog(paths: Paths): Promise<string> {
  const errors = await readFile(join(paths.logs, 'errors'), 'utf8').catch(() => '');
  return `ns-slapd: ${errors.slice(-4_000)}`;
}

function serviceDn(places: Places): string {
  return `uid=postern,${places.suffix}`;
}

async function packageUser(): Promise<Owner> {
  const [uid, gid] = await Promise.all(['-u', '-g'].map((flag) => tool('id', [flag, USER])));
  return { uid: Number(uid), gid: Number(gid) };
}

async function writeConfiguration(paths: Paths, freeIpa: boolean): Promise<void> {
  await copyFile('/etc/dirsrv/config/slapd-collations.conf', join(paths.config, 'slapd-collations.conf'));
  await copyFile('/etc/dirsrv/config/certmap.conf', join(paths.config, 'certmap.conf'));
  await copyFile('/etc/dirsrv/schema/99user.ldif', join(paths.schema, '99user.ldif'));
  if (!freeIpa) return;
  await copyFile(join(PACKAGE, '60kerberos.ldif'), join(paths.schema, '60kerberos.ldif'));
  await writeFile(join(paths.schema, '98ipa.ldif'), FREEIPA_SCHEMA);
}

/** The folder and what is in it. */
async function give(path: string, owner: Owner): Promise<void> {
  await chown(path, owner.uid, owner.gid);
  for (const entry of await readdir(path, { recursive: true })) await chown(join(path, entry), owner.uid, owner.gid);
}

/** Into the NSS database that the server reads, without a password of its own. */
async function storeCertificate(paths: Paths, files: ServerFiles, owner: Owner): Promise<void> {
  const bundle = join(paths.run, 'server.p12');
  const pack = ['pkcs12', '-export', '-name', 'Server-Cert', '-inkey', files.key, '-in', files.certificate];
  await tool('certutil', ['-N', '-d', paths.config, '--empty-password'], { owner });
  await tool('openssl', [...pack, '-passout', 'pass:x', '-out', bundle]);
  await chown(bundle, owner.uid, owner.gid);
  await tool('pk12util', ['-i', bundle, '-d', paths.config, '-W', 'x'], { owner });
  await tool('certutil', ['-A', '-n', 'authority', '-t', 'CT,,', '-a', '-i', files.ca, '-d', paths.config], { owner });
}

async function load(url: string, kind: Flavour, options: Ds389Options): Promise<void> {
  const client = new Client({ url, timeout: 60_000 });
  try {
    await client.bind(MANAGER.dn, MANAGER.password);
    const entries = [...tree(kind.places, options), ...personEntries(kind), ...groupEntries(kind)];
    for (const { dn, attributes } of entries) await client.add(dn, writable(attributes));
    // Only now, as it makes every password that an administrator sets one to be changed.
    await client.modify(
      'cn=config',
      replace({ passwordMustChange: 'on', passwordExp: 'on', passwordMaxAge: '8640000' }),
    );
    for (const one of Object.values<Person>(PEOPLE)) {
      const expires = one.state === undefined ? undefined : EXPIRES[one.state];
      if (expires !== undefined)
        await client.modify(uidDn(kind.places, one), replace({ passwordExpirationTime: expires }));
    }
  } finally {
    await client.unbind();
  }
}

function replace(values: Readonly<Record<string, string>>): Change[] {
  return Object.entries(values).map(
    ([type, value]) => new Change({ operation: 'replace', modification: new Attribute({ type, values: [value] }) }),
  );
}

function tree(places: Places, { freeIpa = false, selfWrite = false }: Ds389Options): Entry[] {
  const nameOf = (dn: string): string => dn.slice(dn.indexOf('=') + 1, dn.indexOf(','));
  const branch = (dn: string): Entry => {
    const name = nameOf(dn);
    return freeIpa
      ? { dn, attributes: { objectClass: ['top', 'nsContainer'], cn: name } }
      : { dn, attributes: { objectClass: ['top', 'organizationalUnit'], ou: name } };
  };
  const readable =
    '(targetattr!="userPassword || aci")(version 3.0; acl "read"; allow (read,search,compare) userdn="ldap:///all";)';
  const writable = '(targetattr="*")(version 3.0; acl "self"; allow (write) userdn="ldap:///self";)';
  const aci = selfWrite ? [readable, writable] : readable;
  return [
    { dn: places.suffix, attributes: { objectClass: ['top', 'domain'], dc: nameOf(places.suffix), aci } },
    ...(freeIpa ? [branch(`cn=accounts,${places.suffix}`)] : []),
    ...[places.people, places.groups, places.elsewhere, places.archive].map(branch),
    {
      dn: serviceDn(places),
      attributes: {
        objectClass: ['top', 'account', 'simpleSecurityObject'],
        uid: 'postern',
        userPassword: SERVICE_PASSWORD,
      },
    },
    {
      dn: `cn=dormant,${places.suffix}`,
      attributes: {
        objectClass: ['top', 'ldapsubentry', 'extensibleObject', 'accountpolicy'],
        cn: 'dormant',
        accountInactivityLimit: '86400',
      },
    },
  ];
}
