/**
 * Samba's domain controller as the Active Directory. It serves LDAP on ports that cannot be chosen, so each has an
 * address of 127.0.0.0/8 of its own. Needs root.
 */

import { randomInt } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Attribute, Change, Client } from 'ldapts';
import { makeCertificates, type ServerFiles } from './certificates.ts';
import { mailOf } from './entries.ts';
import { dnValue, type Entry, ldif, ldifAdditions } from './ldif.ts';
import {
  type AccountState,
  EVERYONE,
  GROUPS,
  groupDn,
  PEOPLE,
  PERSON_KEYS,
  type Person,
  type Places,
  SERVICE_PASSWORD,
} from './people.ts';
import { makeFolder, removeFolder, startDaemon, tool, untilListening } from './processes.ts';
import type { DirectoryServer } from './server.ts';

/** Debian's own, which has the modules of python3-samba. */
const PYTHON = '/usr/bin/python3';
const REALM = 'CORP.EXAMPLE';
export const DNS_DOMAIN = 'corp.example';
export const NETBIOS_DOMAIN = 'CORP';
const SUFFIX = 'DC=corp,DC=example';
const PLACES: Places = {
  suffix: SUFFIX,
  people: `OU=People,${SUFFIX}`,
  groups: `OU=Groups,${SUFFIX}`,
  // Apart, as Samba reads every member of every group below the base to follow groups in groups.
  large: `OU=Large,${SUFFIX}`,
  elsewhere: `OU=Clubs,${SUFFIX}`,
  archive: `OU=Archive,${SUFFIX}`,
};
const MANAGER = { dn: `CN=Administrator,CN=Users,${SUFFIX}`, password: 'Manager-Pass1' };
const SERVICE = { dn: `CN=Postern,OU=People,${SUFFIX}`, password: SERVICE_PASSWORD };
const PORT = 389;
const SECURE_PORT = 636;

const NORMAL_ACCOUNT = 512;
const ACCOUNT_DISABLED = 2;
/** 2020, in tenths of microseconds since 1601. */
const LONG_AGO = '132223104000000000';

export interface SambaOptions {
  /** Else an authority and a certificate for its address of its own. */
  readonly certificates?: ServerFiles | undefined;
  /** Of 127.0.0.0/8; else one by chance. */
  readonly address?: string | undefined;
}

export function someAddress(): string {
  return `127.${randomInt(1, 255)}.${randomInt(0, 255)}.${randomInt(1, 255)}`;
}

export async function startSamba(options: SambaOptions = {}): Promise<DirectoryServer> {
  const folder = await makeFolder('samba');
  try {
    return await start(folder, options);
  } catch (error) {
    await removeFolder(folder);
    throw error;
  }
}

async function start(folder: string, options: SambaOptions): Promise<DirectoryServer> {
  const address = options.address ?? someAddress();
  const files = options.certificates ?? (await makeCertificates(folder, { names: [`IP:${address}`] }));
  const config = join(folder, 'smb.conf');
  await provision(folder);
  await Promise.all(
    ['run', 'ncalrpc', 'log', 'prov/cache'].map((name) => mkdir(join(folder, name), { recursive: true })),
  );
  await writeFile(config, configuration(folder, address, files));
  const [data, secrets] = [join(folder, 'data.ldif'), join(folder, 'protected.ldif')];
  await writeFile(data, `${ldif(entries())}\n${ldifAdditions(memberships())}`);
  await writeFile(secrets, backdated());
  await tool(PYTHON, [
    join(import.meta.dirname, 'samba-load.py'),
    config,
    data,
    secrets,
    groupDn(PLACES, 'everyone'),
    String(EVERYONE - 1),
  ]);

  const daemon = startDaemon('samba', ['-F', '--no-process-group', '-M', 'single', '-s', config, '--debug-stdout']);
  const stop = async (): Promise<void> => {
    await daemon.stop();
    await removeFolder(folder);
  };
  const secureUrl = `ldaps://${address}:${SECURE_PORT}`;
  try {
    await untilListening(daemon, address, SECURE_PORT);
    await untilListening(daemon, address, PORT);
    await makePrimary(secureUrl, files.ca);
  } catch (error) {
    await daemon.stop();
    throw new Error(`samba: ${daemon.output().slice(-4_000)}`, { cause: error });
  }
  return {
    kind: 'active-directory',
    title: 'AD (Samba)',
    ...PLACES,
    host: address,
    port: PORT,
    url: `ldap://${address}`,
    secureUrl,
    caFile: files.ca,
    service: SERVICE,
    manager: MANAGER,
    log: async () => daemon.output(),
    stop,
  };
}

async function provision(folder: string): Promise<void> {
  const what = [
    `--realm=${REALM}`,
    `--domain=${NETBIOS_DOMAIN}`,
    '--host-name=dc1',
    '--host-ip=127.0.0.1',
    '--use-rfc2307',
  ];
  const how = [
    '--server-role=dc',
    '--dns-backend=NONE',
    `--adminpass=${MANAGER.password}`,
    `--targetdir=${join(folder, 'prov')}`,
  ];
  await tool('samba-tool', ['domain', 'provision', ...what, ...how], { cwd: folder });
}

function configuration(folder: string, address: string, files: ServerFiles): string {
  return `[global]
netbios name = DC1
realm = ${REALM}
workgroup = ${NETBIOS_DOMAIN}
server role = active directory domain controller
server services = ldap
disable netbios = yes
interfaces = ${address}/8
bind interfaces only = yes
private dir = ${folder}/prov/private
state directory = ${folder}/prov/state
cache directory = ${folder}/prov/cache
lock directory = ${folder}/prov
pid directory = ${folder}/run
ncalrpc dir = ${folder}/ncalrpc
log file = ${folder}/log/log.%m
log level = 5
tls keyfile = ${files.key}
tls certfile = ${files.certificate}
tls cafile = ${files.ca}
`;
}

export function adDn(one: Person): string {
  return `CN=${dnValue(one.cn)},${PLACES.people}`;
}

function entries(): Entry[] {
  const unit = (dn: string): Entry => ({ dn, attributes: { objectClass: 'organizationalUnit' } });
  return [
    ...[PLACES.people, PLACES.groups, PLACES.large, PLACES.elsewhere, PLACES.archive].map(unit),
    user(SERVICE.dn, 'postern', SERVICE.password, {}),
    ...PERSON_KEYS.map((key) => {
      const one: Person = PEOPLE[key];
      const names = { displayName: one.cn, sn: one.sn, mail: mailOf(key) };
      return user(adDn(one), one.login, one.password, {
        ...names,
        ...(one.state === undefined ? {} : STATES[one.state]),
      });
    }),
    ...groups(),
  ];
}

const STATES: Readonly<Record<AccountState, Entry['attributes']>> = {
  disabled: { userAccountControl: String(NORMAL_ACCOUNT | ACCOUNT_DISABLED) },
  account_expired: { accountExpires: LONG_AGO },
  password_expired: {},
  must_change: { pwdLastSet: '0' },
};

function user(dn: string, name: string, password: string, more: Entry['attributes']): Entry {
  return {
    dn,
    attributes: {
      objectClass: 'user',
      sAMAccountName: name,
      userPrincipalName: `${name}@${DNS_DOMAIN}`,
      userAccountControl: String(NORMAL_ACCOUNT),
      unicodePwd: Buffer.from(`"${password}"`, 'utf16le'),
      ...more,
    },
  };
}

/** Names of groups for Windows before 2000, unique in the domain. */
function groups(): Entry[] {
  const group = (cn: string, elsewhere = false): Entry => ({
    dn: groupDn(PLACES, cn, elsewhere),
    attributes: {
      objectClass: 'group',
      sAMAccountName: `${elsewhere ? 'club ' : 'group '}${cn.replace(/[,()]/g, '')}`,
    },
  });
  return [
    ...GROUPS.map(({ cn, elsewhere }) => group(cn, elsewhere)),
    ...['everyone', 'operators'].map((cn) => group(cn)),
  ];
}

/** Inner groups have to be there before they are members. */
function memberships(): Entry[] {
  const members = GROUPS.map(({ cn, elsewhere, people, groups: inner = [] }) => ({
    dn: groupDn(PLACES, cn, elsewhere),
    attributes: { member: [...people.map((key) => adDn(PEOPLE[key])), ...inner.map((name) => groupDn(PLACES, name))] },
  }));
  return [
    ...members.filter(({ attributes }) => attributes.member.length > 0),
    { dn: groupDn(PLACES, 'everyone'), attributes: { member: adDn(PEOPLE.big) } },
    { dn: groupDn(PLACES, 'operators'), attributes: { member: adDn(PEOPLE.primary) } },
  ];
}

/** A password older than the domain allows, and the domain's own rule for locks. */
function backdated(): string {
  const replace = (dn: string, name: string, value: string): string =>
    `dn: ${dn}\nchangetype: modify\nreplace: ${name}\n${name}: ${value}\n`;
  return [replace(adDn(PEOPLE.oldPassword), 'pwdLastSet', LONG_AGO), replace(SUFFIX, 'lockoutThreshold', '3')].join(
    '\n',
  );
}

async function makePrimary(url: string, caFile: string): Promise<void> {
  const client = new Client({ url, tlsOptions: { ca: await readFile(caFile) }, timeout: 30_000 });
  try {
    await client.bind(MANAGER.dn, MANAGER.password);
    const { searchEntries } = await client.search(groupDn(PLACES, 'operators'), {
      scope: 'base',
      attributes: ['primaryGroupToken'],
    });
    const token = String(searchEntries[0]?.['primaryGroupToken']);
    const modification = new Attribute({ type: 'primaryGroupID', values: [token] });
    await client.modify(adDn(PEOPLE.primary), new Change({ operation: 'replace', modification }));
  } finally {
    await client.unbind();
  }
}
