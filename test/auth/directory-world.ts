/**
 * A company's directory for tests of logins through it: a real slapd with a few groups, behind a connection that a test
 * can cut and block.
 */

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { Attribute, Change, Client, Control } from 'ldapts';
import { describe, test } from 'vitest';
import { openDirectories } from '../../src/directory/directories.ts';
import { normaliseDn } from '../../src/directory/dn.ts';
import type { DirectorySettings } from '../../src/directory/settings.ts';
import { parseRoleName, parseTenantId, type RoleName, type TenantId } from '../../src/domain/ids.ts';
import { createDirectoryService, type DirectoryService } from '../../src/iam/auth/directory-service.ts';
import type { DirectoryReport } from '../../src/telemetry/directory-metrics.ts';
import { findParts } from '../directory/servers/packages.ts';
import type { DirectoryServer } from '../directory/servers/server.ts';
import { startSlapd } from '../directory/servers/slapd.ts';

/** RFC 3296: a reference is treated like any other entry. */
const MANAGE_DSA_IT = '2.16.840.1.113730.3.4.2';

export const DIRECTORY = 'corp';
export const WRONG = 'not the password of anybody';

/** `gone`: no server listens. `hanging`: connections are accepted and never answered. */
export type WireState = 'open' | 'gone' | 'hanging';

export interface ServiceOptions {
  readonly maxAtOnce?: number;
  /** Another directory, queried after this one. */
  readonly beside?: Partial<DirectorySettings> & Pick<DirectorySettings, 'name'>;
  /** Default: the machine's clock. */
  readonly now?: () => number;
}

export interface DirectoryWorld {
  readonly server: DirectoryServer;
  /** Every report since the last `forget`. */
  readonly reports: DirectoryReport[];
  /** The directory service of a server; several servers may share one. */
  service(changes?: Partial<DirectorySettings>, options?: ServiceOptions): DirectoryService;
  setWire(state: WireState): void;
  /** Cuts every connection to the directory. */
  dropAll(): void;
  /** Connections to the directory that are open now. */
  connections(): number;
  /** Adds a person without groups. */
  add(name: string, attributes?: Readonly<Record<string, string>>): Promise<void>;
  remove(name: string): Promise<void>;
  /** Sets one attribute; undefined removes it. */
  set(name: string, attribute: string, value: string | undefined): Promise<void>;
  rename(name: string, to: string): Promise<void>;
  join(group: string, name: string): Promise<void>;
  leave(group: string, name: string): Promise<void>;
  /** Adds a reference to another server to the people, and removes it. */
  refer(name: string): Promise<void>;
  unrefer(name: string): Promise<void>;
  stop(): Promise<void>;
}

export const LDAP_PASSWORD = 'Secret-Pass1';
/** The role that each group gives. */
const GROUP_ROLES = { developers: 'developer', analysts: 'analyst', operators: 'admin', testers: 'tester' };
const GROUP_TENANTS = { acme: 'acme', globex: 'globex', nowhere: 'nowhere' };
const GROUPS = [...Object.keys(GROUP_ROLES), ...Object.keys(GROUP_TENANTS)];
/** A permanent lock by an administrator. */
export const LOCKED = ['pwdAccountLockedTime', '000001010000Z'] as const;

/**
 * Runs tests that need a slapd. Without one, and without a way to install one, the tests are skipped with the reason,
 * and fail under CI.
 */
export async function describeWithSlapd(title: string, tests: () => void): Promise<void> {
  const missing = (await findParts(['openldap'])).get('openldap');
  if (missing === undefined) {
    describe(title, tests);
    return;
  }
  test(title, ({ skip }) => {
    if (process.env['CI'] === 'true') throw new Error(missing);
    skip(missing);
  });
}

export async function startDirectoryWorld(): Promise<DirectoryWorld> {
  const server = await startSlapd({ small: true });
  const wire = await startWire(server.port);
  const client = new Client({ url: server.url });
  const dnOf = (name: string): string => `uid=${name},${server.people}`;
  const groupDn = (name: string): string => `cn=${name},${server.groups}`;
  await client.bind(server.manager.dn, server.manager.password);
  for (const name of GROUPS) {
    await client.add(groupDn(name), { objectClass: ['top', 'groupOfNames'], cn: name, member: server.manager.dn });
  }
  const modify = (dn: string, operation: 'add' | 'delete' | 'replace', type: string, values: string[]): Promise<void> =>
    client.modify(dn, new Change({ operation, modification: new Attribute({ type, values }) }));
  const reports: DirectoryReport[] = [];
  const mapped = <T>(
    groups: Readonly<Record<string, string>>,
    read: (text: string) => T | undefined,
  ): ReadonlyMap<string, T> =>
    new Map(Object.entries(groups).map(([name, text]) => [known(normaliseDn(groupDn(name))), known(read(text))]));
  const settings: DirectorySettings = {
    name: DIRECTORY,
    type: 'openldap',
    urls: [{ text: `ldap://127.0.0.1:${wire.port}`, secure: false, host: '127.0.0.1', port: wire.port }],
    startTls: false,
    ca: undefined,
    baseDn: server.suffix,
    userDnPattern: undefined,
    serviceAccount: server.service,
    userSearchBase: server.people,
    userSearchFilter: '(uid={0})',
    groupSearchBase: server.groups,
    groupSearchFilter: '(member={0})',
    nestedGroups: false,
    memberOf: 'auto',
    attributes: {},
    groupRoles: mapped<readonly RoleName[]>(GROUP_ROLES, (text) => [known(parseRoleName(text))]),
    tenantId: known(parseTenantId('default')),
    groupTenants: mapped<TenantId>(GROUP_TENANTS, parseTenantId),
    domains: [],
    namesWithoutDomain: false,
    timeoutMs: 5_000,
  };
  return {
    server,
    reports,
    service: (changes = {}, { maxAtOnce, beside, now } = {}) =>
      createDirectoryService({
        directories: openDirectories(
          [{ ...settings, ...changes }, ...(beside === undefined ? [] : [{ ...settings, ...beside }])],
          undefined,
          now,
        ),
        names: [DIRECTORY, ...(beside === undefined ? [] : [beside.name])],
        report: (report) => reports.push(report),
        ...(maxAtOnce === undefined ? {} : { maxAtOnce }),
      }),
    setWire: (state) => wire.set(state),
    dropAll: () => wire.drop(),
    connections: () => wire.open(),
    add: (name, attributes = {}) =>
      client.add(dnOf(name), {
        objectClass: ['top', 'inetOrgPerson'],
        uid: name,
        cn: name,
        sn: name,
        displayName: `Name of ${name}`,
        userPassword: LDAP_PASSWORD,
        ...attributes,
      }),
    remove: (name) => client.del(dnOf(name)),
    set: (name, attribute, value) => modify(dnOf(name), 'replace', attribute, value === undefined ? [] : [value]),
    rename: (name, to) => client.modifyDN(dnOf(name), `uid=${to}`),
    join: (group, name) => modify(groupDn(group), 'add', 'member', [dnOf(name)]),
    leave: (group, name) => modify(groupDn(group), 'delete', 'member', [dnOf(name)]),
    refer: (name) =>
      client.add(`cn=${name},${server.people}`, {
        objectClass: ['top', 'referral', 'extensibleObject'],
        cn: name,
        ref: `ldap://other.example/ou=${name}`,
      }),
    unrefer: (name) => client.del(`cn=${name},${server.people}`, new Control(MANAGE_DSA_IT, { critical: true })),
    async stop() {
      await client.unbind();
      await wire.stop();
      await server.stop();
    },
  };
}

function known<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the world of a test names something that cannot be');
  return value;
}

interface Wire {
  readonly port: number;
  set(state: WireState): void;
  open(): number;
  drop(): void;
  stop(): Promise<void>;
}

async function startWire(to: number): Promise<Wire> {
  let state: WireState = 'open';
  const sockets = new Set<Socket>();
  let open = 0;
  const keep = (socket: Socket): Socket => {
    sockets.add(socket);
    return socket.once('close', () => sockets.delete(socket)).on('error', () => socket.destroy());
  };
  const drop = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((incoming) => {
    keep(incoming);
    if (state === 'gone') return void incoming.resetAndDestroy();
    open++;
    incoming.once('close', () => open--);
    if (state === 'hanging') return void incoming.resume();
    const outgoing = keep(connect(to, '127.0.0.1'));
    incoming.pipe(outgoing).pipe(incoming);
    incoming.once('close', () => outgoing.destroy());
    outgoing.once('close', () => incoming.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    set(next) {
      state = next;
    },
    open: () => open,
    drop,
    async stop() {
      drop();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
