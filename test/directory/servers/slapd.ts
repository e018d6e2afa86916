/**
 * OpenLDAP's slapd with the overlays that its administrators use: memberOf, password policy. It runs as the user that
 * runs the tests.
 */

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'ldapts';
import { freePort } from '../../support/ports.ts';
import { makeCertificates, type ServerFiles } from './certificates.ts';
import { crowdEntries, type Flavour, groupEntries, personEntries } from './entries.ts';
import { type Entry, ldif, writable } from './ldif.ts';
import { type AccountState, type Places, SERVICE_PASSWORD } from './people.ts';
import { makeFolder, removeFolder, startDaemon, tool, untilListening } from './processes.ts';
import type { DirectoryServer } from './server.ts';

const SUFFIX = 'dc=example,dc=com';
const PLACES: Places = {
  suffix: SUFFIX,
  people: `ou=people,${SUFFIX}`,
  groups: `ou=groups,${SUFFIX}`,
  large: `ou=groups,${SUFFIX}`,
  elsewhere: `ou=clubs,${SUFFIX}`,
  archive: `ou=archive,${SUFFIX}`,
};
const POLICIES = `ou=policies,${SUFFIX}`;
const MANAGER = { dn: `cn=manager,${SUFFIX}`, password: 'Manager-Pass1' };
const SERVICE = { dn: `cn=postern,${SUFFIX}`, password: SERVICE_PASSWORD };
/** A service account that may read the tree, and no person in it. */
export const BLIND = { dn: `cn=blind,${SUFFIX}`, password: SERVICE_PASSWORD };

export interface SlapdOptions {
  /** Answers a bind without a password with success, as an anonymous one (RFC 4513, section 5.1.2). */
  readonly allowUnauthenticated?: boolean;
  /** The server's files; default: an authority and a certificate for loopback of its own. */
  readonly certificates?: ServerFiles;
  /** Refuses StartTLS, and listens for ldap:// only. */
  readonly withoutTls?: boolean;
  /** Answers for a locked account as for a wrong password, which is the default of OpenLDAP. */
  readonly silentLocks?: boolean;
  /** Leave out the 3,000 and the groups. */
  readonly small?: boolean;
  /**
   * People may write their own entries, and the schemas dsee and msuser are loaded, which make nsUniqueId, objectGUID
   * and memberOf ordinary attributes.
   */
  readonly selfWrite?: boolean;
  /** Writes no line about each operation, which is Debian's default: for benchmarks. */
  readonly quiet?: boolean;
}

/** The states of an account by the password policy overlay (slapo-ppolicy(5)). */
const STATES: Readonly<Record<AccountState, Entry['attributes']>> = {
  // Locked for good by an administrator.
  disabled: { pwdAccountLockedTime: '000001010000Z' },
  account_expired: { pwdEndTime: '20200101000000Z' },
  password_expired: { pwdChangedTime: '20200101000000Z', pwdPolicySubentry: `cn=expiring,${POLICIES}` },
  must_change: { pwdReset: 'TRUE' },
};

const FLAVOUR: Flavour = {
  places: PLACES,
  personClasses: [],
  groupClasses: [],
  person: (one) => (one.state === undefined ? {} : STATES[one.state]),
  group: () => ({}),
};

export async function startSlapd(options: SlapdOptions = {}): Promise<DirectoryServer> {
  const folder = await makeFolder('slapd');
  try {
    return await start(folder, options);
  } catch (error) {
    await removeFolder(folder);
    throw error;
  }
}

async function start(folder: string, options: SlapdOptions): Promise<DirectoryServer> {
  const [port, securePort] = [await freePort(), await freePort()];
  const files = options.certificates ?? (await makeCertificates(folder));
  const config = join(folder, 'slapd.conf');
  await mkdir(join(folder, 'db'));
  await writeFile(config, configuration(folder, files, options));
  const data = join(folder, 'data.ldif');
  const people = [...tree(), ...personEntries(FLAVOUR), ...(options.small === true ? [] : crowdEntries(FLAVOUR))];
  await writeFile(data, ldif(people));
  await tool('slapadd', ['-q', '-f', config, '-l', data]);
  const listen =
    options.withoutTls === true
      ? `ldap://127.0.0.1:${port}/`
      : `ldap://127.0.0.1:${port}/ ldaps://127.0.0.1:${securePort}/`;
  const daemon = startDaemon('slapd', ['-f', config, '-h', listen, '-d', options.quiet === true ? 'none' : 'stats']);
  const stop = async (): Promise<void> => {
    await daemon.stop();
    await removeFolder(folder);
  };
  try {
    await untilListening(daemon, '127.0.0.1', port);
    // Through the protocol, as the overlay writes memberOf only there.
    if (options.small !== true) await addAll(`ldap://127.0.0.1:${port}`, groupEntries(FLAVOUR));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    kind: 'openldap',
    title: 'OpenLDAP',
    ...PLACES,
    host: '127.0.0.1',
    port,
    url: `ldap://127.0.0.1:${port}`,
    secureUrl: `ldaps://127.0.0.1:${securePort}`,
    caFile: files.ca,
    service: SERVICE,
    manager: MANAGER,
    log: async () => daemon.output(),
    stop,
  };
}

async function addAll(url: string, entries: readonly Entry[]): Promise<void> {
  const client = new Client({ url, timeout: 60_000 });
  try {
    await client.bind(MANAGER.dn, MANAGER.password);
    for (const { dn, attributes } of entries) await client.add(dn, writable(attributes));
  } finally {
    await client.unbind();
  }
}

function configuration(folder: string, files: ServerFiles, options: SlapdOptions): string {
  const selfWrite = options.selfWrite === true;
  const more = selfWrite ? ['dsee', 'msuser'] : [];
  const schemas = ['core', 'cosine', 'nis', 'inetorgperson', ...more].map(
    (name) => `include /etc/ldap/schema/${name}.schema`,
  );
  return `${schemas.join('\n')}
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
moduleload ppolicy
pidfile ${folder}/slapd.pid
argsfile ${folder}/slapd.args
${options.withoutTls === true ? '' : `TLSCACertificateFile ${files.ca}\nTLSCertificateFile ${files.certificate}\nTLSCertificateKeyFile ${files.key}`}
${options.allowUnauthenticated === true ? 'allow bind_anon_dn' : ''}
sizelimit 500
${options.quiet === true ? 'loglevel none' : ''}
threads 4

database mdb
suffix "${SUFFIX}"
rootdn "${MANAGER.dn}"
rootpw ${MANAGER.password}
directory ${folder}/db
maxsize 67108864
dbnosync
index objectClass,uid,cn,mail,member,uniqueMember,memberUid,${selfWrite ? '' : 'memberOf,'}entryUUID eq
access to attrs=userPassword by anonymous auth by self write by * none
access to dn.children="${PLACES.people}" by dn.exact="${BLIND.dn}" none by * break
access to * ${selfWrite ? 'by self write ' : ''}by users read by anonymous auth

overlay memberof
memberof-refint TRUE
memberof-dangling ignore

overlay ppolicy
ppolicy_default "cn=default,${POLICIES}"
${options.silentLocks === true ? '' : 'ppolicy_use_lockout'}
`;
}

function tree(): Entry[] {
  const unit = (dn: string): Entry => ({
    dn,
    attributes: { objectClass: ['top', 'organizationalUnit'], ou: dn.slice(3, dn.indexOf(',')) },
  });
  const policy = (cn: string, rules: Entry['attributes']): Entry => ({
    dn: `cn=${cn},${POLICIES}`,
    attributes: { objectClass: ['top', 'device', 'pwdPolicy'], cn, pwdAttribute: 'userPassword', ...rules },
  });
  return [
    { dn: SUFFIX, attributes: { objectClass: ['top', 'dcObject', 'organization'], o: 'Example', dc: 'example' } },
    ...[PLACES.people, PLACES.groups, PLACES.elsewhere, PLACES.archive, POLICIES].map(unit),
    policy('default', { pwdLockout: 'TRUE', pwdMaxFailure: '3', pwdLockoutDuration: '0', pwdMustChange: 'TRUE' }),
    policy('expiring', { pwdMaxAge: '86400' }),
    ...[SERVICE, BLIND].map(({ dn, password }) => ({
      dn,
      attributes: {
        objectClass: ['top', 'device', 'simpleSecurityObject'],
        cn: dn.slice(3, dn.indexOf(',')),
        userPassword: password,
      },
    })),
  ];
}
