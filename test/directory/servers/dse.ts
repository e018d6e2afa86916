/**
 * The configuration of a 389 Directory Server: the template of its package, filled in, with what an administrator would
 * add.
 */

import { join } from 'node:path';

const TEMPLATE_VALUES = /%([a-z_]+)%/g;

/** The folders of one server. All of them have to be there. */
export interface Paths {
  readonly config: string;
  readonly schema: string;
  readonly database: string;
  readonly logs: string;
  readonly run: string;
}

export function pathsIn(folder: string): Paths {
  const config = join(folder, 'config');
  return {
    config,
    schema: join(config, 'schema'),
    database: join(folder, 'db'),
    logs: join(folder, 'logs'),
    run: join(folder, 'run'),
  };
}

export interface DseParts {
  readonly paths: Paths;
  readonly port: number;
  readonly securePort: number;
  readonly suffix: string;
  readonly user: string;
  /** The password as it is stored: with its scheme. */
  readonly manager: { readonly dn: string; readonly password: string };
  readonly allowUnauthenticated: boolean;
}

/** @param template template-dse.ldif of the package */
export function fillDse(template: string, parts: DseParts): string {
  const { paths } = parts;
  const values: Readonly<Record<string, string>> = {
    schema_dir: paths.schema,
    lock_dir: paths.run,
    tmp_dir: paths.run,
    cert_dir: paths.config,
    ldif_dir: paths.run,
    bak_dir: paths.run,
    run_dir: paths.run,
    inst_dir: paths.run,
    log_dir: paths.logs,
    config_dir: paths.config,
    db_dir: paths.database,
    db_home_dir: paths.database,
    db_lib: 'bdb',
    fqdn: 'localhost',
    ds_port: String(parts.port),
    ds_user: parts.user,
    ds_passwd: parts.manager.password,
    ds_suffix: parts.suffix,
    rootdn: parts.manager.dn,
    ldapi: join(paths.run, 'ldapi'),
    ldapi_enabled: 'off',
    ldapi_autobind: 'off',
  };
  const filled = template.replace(TEMPLATE_VALUES, (whole, name: string) => values[name] ?? whole);
  const changed = changes(parts).reduce((text, [dn, lines]) => setLines(text, dn, lines), filled);
  return `${changed.trimEnd()}\n\n${database(parts.suffix, join(paths.database, 'userroot'))}`;
}

type Change = readonly [dn: string, lines: Readonly<Record<string, string>>];

function changes(parts: DseParts): Change[] {
  const on = { 'nsslapd-pluginEnabled': 'on' };
  return [
    [
      'cn=config',
      {
        'nsslapd-listenhost': '127.0.0.1',
        'nsslapd-securelistenhost': '127.0.0.1',
        'nsslapd-security': 'on',
        'nsslapd-securePort': String(parts.securePort),
        'nsslapd-accesslog-logbuffering': 'off',
        'nsslapd-allow-unauthenticated-binds': parts.allowUnauthenticated ? 'on' : 'off',
        passwordLockout: 'on',
        passwordMaxFailure: '3',
      },
    ],
    ['cn=MemberOf Plugin,cn=plugins,cn=config', { ...on, memberOfAutoAddOC: 'nsMemberOf' }],
    // The tests recreate the data if the machine fails.
    ['cn=config,cn=ldbm database,cn=plugins,cn=config', { 'nsslapd-db-durable-transaction': 'off' }],
    // It refuses names that are not ASCII.
    ['cn=7-bit check,cn=plugins,cn=config', { 'nsslapd-pluginEnabled': 'off' }],
    ['cn=Account Policy Plugin,cn=plugins,cn=config', on],
    [
      'cn=config,cn=Account Policy Plugin,cn=plugins,cn=config',
      { stateAttrName: 'lastLoginTime', specAttrName: 'acctPolicySubentry', limitAttrName: 'accountInactivityLimit' },
    ],
  ];
}

/** Gives the entry these values in place of those that it has. */
function setLines(text: string, dn: string, lines: Readonly<Record<string, string>>): string {
  const start = text.indexOf(`dn: ${dn}\n`);
  if (start === -1) throw new Error(`the template has no entry ${dn}`);
  const blank = text.indexOf('\n\n', start);
  const end = blank === -1 ? text.length : blank;
  const named = new Set(Object.keys(lines).map((name) => name.toLowerCase()));
  const kept = text
    .slice(start, end)
    .split('\n')
    .filter((line) => !named.has(line.slice(0, line.indexOf(':')).toLowerCase()));
  const added = Object.entries(lines).map(([name, value]) => `${name}: ${value}`);
  return text.slice(0, start) + [...kept, ...added].join('\n') + text.slice(end);
}

function database(suffix: string, folder: string): string {
  const place = 'cn=ldbm database,cn=plugins,cn=config';
  const index = (name: string, ...types: string[]): string =>
    [
      `dn: cn=${name},cn=index,cn=userroot,${place}`,
      'objectClass: top',
      'objectClass: nsIndex',
      `cn: ${name}`,
      'nsSystemIndex: false',
      ...types.map((type) => `nsIndexType: ${type}`),
      '',
    ].join('\n');
  return `dn: cn=userroot,${place}
objectClass: top
objectClass: extensibleObject
objectClass: nsBackendInstance
cn: userroot
nsslapd-suffix: ${suffix}
nsslapd-directory: ${folder}

dn: cn=index,cn=userroot,${place}
objectClass: top
objectClass: extensibleObject
cn: index

${['uid', 'cn', 'mail', 'member', 'uniqueMember', 'memberOf', 'memberUid'].map((name) => index(name, 'pres', 'eq')).join('\n')}
dn: cn=${suffix.replaceAll('=', '\\3D').replaceAll(',', '\\2C')},cn=mapping tree,cn=config
objectClass: top
objectClass: extensibleObject
objectClass: nsMappingTree
cn: ${suffix}
nsslapd-state: backend
nsslapd-backend: userroot
`;
}
