import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { directorySettings } from '../../src/config/directories.ts';
import { loadConfig } from '../../src/config/load.ts';
import { renderConfig } from '../../src/config/render.ts';
import { type Env, load, loaded, problemsOf, withDirectory } from './support/load.ts';

const FULL = `
ldap:
  enabled: true
  url: [ldap://a.example, "ldap://[::1]:1389"]
  start-tls: true
  base-dn: dc=example,dc=com
  bind-dn: cn=service,dc=example,dc=com
  bind-password: hunter22
  user-search-base: ou=people,dc=example,dc=com
  user-search-filter: "(uid={0})"
  group-search-base: ou=groups,dc=example,dc=com
  group-search-filter: "(member={0})"
  nested-groups: false
  attribute-mapping: {email: mail, display-name: cn}
  group-role-mapping:
    "CN=Admins , ou=groups,dc=example,dc=com": admin
    "cn=Dev\\\\2C All,ou=groups,dc=example,dc=com": [developer, analyst]
  group-tenant-mapping: {"cn=acme,ou=groups,dc=example,dc=com": acme}
  tenant-id: main
  domain: EXAMPLE
  timeout: 2500ms
`;

const settings = (yaml: string, env: Env = {}) => {
  const { config, secrets } = loaded(load(yaml, env));
  return directorySettings(config, secrets);
};

describe('the settings of a directory', () => {
  it('are parsed into the form that the directory module takes', () => {
    const [one, ...more] = settings(FULL);
    expect(more).toEqual([]);
    expect(one).toEqual({
      name: 'ldap',
      type: 'auto',
      urls: [
        { text: 'ldap://a.example', secure: false, host: 'a.example', port: 389 },
        { text: 'ldap://[::1]:1389', secure: false, host: '::1', port: 1389 },
      ],
      startTls: true,
      ca: undefined,
      baseDn: 'dc=example,dc=com',
      userDnPattern: undefined,
      serviceAccount: { dn: 'cn=service,dc=example,dc=com', password: 'hunter22' },
      userSearchBase: 'ou=people,dc=example,dc=com',
      userSearchFilter: '(uid={0})',
      groupSearchBase: 'ou=groups,dc=example,dc=com',
      groupSearchFilter: '(member={0})',
      nestedGroups: false,
      memberOf: 'auto',
      attributes: { email: 'mail', displayName: 'cn' },
      groupRoles: new Map([
        ['cn=admins,ou=groups,dc=example,dc=com', ['admin']],
        ['cn=dev\\, all,ou=groups,dc=example,dc=com', ['developer', 'analyst']],
      ]),
      tenantId: 'main',
      groupTenants: new Map([['cn=acme,ou=groups,dc=example,dc=com', 'acme']]),
      domains: ['example'],
      namesWithoutDomain: false,
      timeoutMs: 2500,
    });
  });

  it('have defaults, and are off unless enabled', () => {
    expect(settings('ldap: {url: ldaps://a.example, base-dn: dc=x}')).toEqual([]);
    expect(settings('ldap: {enabled: true, url: ldaps://a.example, base-dn: dc=x}')).toMatchObject([
      {
        urls: [{ secure: true, port: 636 }],
        startTls: false,
        nestedGroups: true,
        tenantId: 'default',
        timeoutMs: 5000,
        domains: [],
        memberOf: 'auto',
        namesWithoutDomain: false,
      },
    ]);
  });

  it('come from the environment too, maps as JSON, the password also from a file', () => {
    withDirectory((directory) => {
      const file = join(directory, 'password');
      writeFileSync(file, 'hunter22\n');
      const env = {
        POSTERN_LDAP_ENABLED: 'true',
        POSTERN_LDAP_URL: 'ldaps://b.example:1636',
        POSTERN_LDAP_BASE_DN: 'dc=y',
        POSTERN_LDAP_BIND_DN: 'service@corp.example',
        POSTERN_LDAP_BIND_PASSWORD_FILE: file,
        POSTERN_LDAP_GROUP_ROLE_MAPPING: '{"cn=a,dc=y":"developer"}',
        POSTERN_LDAP_USER_DN_PATTERN: '{0}@corp.example',
      };
      expect(settings('', env)).toMatchObject([
        {
          urls: [{ host: 'b.example', port: 1636 }],
          userDnPattern: '{0}@corp.example',
          serviceAccount: { dn: 'service@corp.example', password: 'hunter22' },
          groupRoles: new Map([['cn=a,dc=y', ['developer']]]),
        },
      ]);
      const yaml = `ldap: {enabled: true, url: ldap://a, base-dn: dc=x, bind-dn: cn=x, bind-password-file: ${file}}`;
      expect(settings(yaml)).toMatchObject([{ serviceAccount: { dn: 'cn=x', password: 'hunter22' } }]);
      expect(settings(yaml.replace(/ldap: (.*)/, 'ldap: [$1]'))).toMatchObject([
        { serviceAccount: { password: 'hunter22' } },
      ]);
    });
  });

  it('may be several, in order, each with its name', () => {
    const yaml = `
ldap:
  - {name: corp, enabled: true, url: ldaps://dc.corp.example, base-dn: "dc=corp,dc=example", domain: [corp, corp.example]}
  - {name: off, url: ldaps://x, base-dn: dc=x}
  - name: lab
    enabled: true
    url: ldaps://lab.example
    base-dn: dc=lab
    names-without-domain: true
    member-of: trusted
    bind-dn: cn=x,dc=lab
    bind-password: hunter22
`;
    expect(settings(yaml)).toMatchObject([
      { name: 'corp', domains: ['corp', 'corp.example'] },
      { name: 'lab', serviceAccount: { password: 'hunter22' }, namesWithoutDomain: true, memberOf: 'trusted' },
    ]);
    const shown = load(yaml);
    expect(shown.kind === 'config' ? renderConfig(shown.settings) : '').not.toContain('hunter22');
    expect(JSON.stringify(loaded(shown).config)).not.toContain('hunter22');
  });
});

describe('a wrong one is named with file, line and what was expected', () => {
  const ON = 'enabled: true\n  url: ldaps://a\n  base-dn: dc=x\n  ';

  it.each([
    ['url: http://a', 'postern.yaml:2:3: ldap.url: expected ldap://host:port or ldaps://host:port, got http://a'],
    [
      'url: ldap://a/dc=x',
      'postern.yaml:2:3: ldap.url: expected ldap://host:port or ldaps://host:port, got ldap://a/dc=x',
    ],
    ['url: [ldap://a, 7]', 'postern.yaml:2:19: ldap.url[1]: expected ldap://host:port or ldaps://host:port, got 7'],
    [
      'base-dn: example.com',
      'postern.yaml:2:3: ldap.base-dn: expected a DN, such as dc=example,dc=com, got example.com',
    ],
    ['timeout: 5m', 'postern.yaml:2:3: ldap.timeout: expected a duration from 100ms to 60s, got 5m'],
    [
      'type: edirectory',
      'postern.yaml:2:3: ldap.type: expected one of auto, active-directory, openldap, freeipa, 389ds, got edirectory',
    ],
    ['domian: x', 'postern.yaml:2:3: ldap.domian: unknown key; did you mean ldap.domain?'],
    [
      'attribute-mapping: {mail: mail}',
      'postern.yaml:2:29: ldap.attribute-mapping.mail: unknown key; did you mean email?',
    ],
    [
      'attribute-mapping:\n    email: dn',
      'postern.yaml:3:12: ldap.attribute-mapping.email: expected the name of an attribute, got dn',
    ],
    [
      'group-role-mapping:\n    cn=a,dc=x: admin\n    staff: admin',
      'postern.yaml:4:12: ldap.group-role-mapping.staff: expected the DN of a group as the key, got staff',
    ],
    ['group-role-mapping:\n    cn=a,dc=x: admin\n    CN=A, DC=x: admin', undefined],
    [
      'group-role-mapping:\n    "cn=a,dc=x": admin\n    "CN=A, DC=x": admin',
      'postern.yaml:4:19: ldap.group-role-mapping.CN=A, DC=x: the same group twice',
    ],
    [
      'group-role-mapping:\n    "cn=a,dc=x": [admin, "no role"]',
      'postern.yaml:3:26: ldap.group-role-mapping.cn=a,dc=x[1]: expected the name of a role, got "no role"',
    ],
    [
      'group-tenant-mapping: {"cn=a,dc=x": "No Tenant"}',
      'postern.yaml:2:39: ldap.group-tenant-mapping.cn=a,dc=x: expected the id of a tenant, got "No Tenant"',
    ],
    ['bind-password: hunter22', 'ldap.bind-dn: required with ldap.bind-password'],
    ['bind-dn: cn=x', 'ldap.bind-password: required with ldap.bind-dn'],
    ['enabled: true', 'ldap.url: required with ldap.enabled'],
    [
      `${ON}start-tls: true`,
      'postern.yaml:5:3: ldap.start-tls: expected false with an ldaps:// URL, which already uses TLS',
    ],
    ['ca-file: /nowhere', 'postern.yaml:2:3: ldap.ca-file: expected a readable file, got /nowhere'],
  ])('%j', (yaml, problem) => {
    const problems = problemsOf(load(`ldap:\n  ${yaml}\n`));
    if (problem === undefined) expect(problems.length).toBeGreaterThan(0);
    else expect(problems).toContain(problem);
  });

  it.each(
    ['uid={0}', '{0}', '{0}@a@b', 'x{0}@corp', 'uid={0},{0}', 'ou=people', 'uid={0},x', 'a\\b\\{0}'].filter(
      (text) => text !== 'uid={0}',
    ),
  )('the pattern %j', (pattern) => {
    expect(problemsOf(load(`ldap.user-dn-pattern: '${pattern}'`))).toHaveLength(1);
  });

  it.each([
    ['uid={0},ou=people', 'base-dn: dc=x', 'dc=x'],
    ['uid={0},ou=people,dc=y', 'base-dn: dc=x', 'dc=x'],
    ['uid={0},dc=x', "base-dn: dc=x\n  user-search-base: 'ou=people,dc=x'", 'ou=people,dc=x'],
  ])('the pattern %j with %j, because its users would not be found at a refresh', (pattern, bases, base) => {
    const yaml = `ldap:\n  enabled: true\n  url: ldaps://a\n  ${bases}\n  user-dn-pattern: '${pattern}'\n`;
    expect(problemsOf(load(yaml))).toEqual([
      expect.stringMatching(
        new RegExp(`ldap\\.user-dn-pattern: expected the whole DN of a user below ${base}, such as`),
      ),
    ]);
    for (const right of [`uid={0},OU=People, ${base}`, '{0}@corp.example', 'CORP\\{0}'])
      expect(settings(yaml.replace(pattern, right))).toHaveLength(1);
    expect(settings(yaml.replace(bases, "base-dn: ''"))).toHaveLength(1);
  });

  it.each(['uid={0}', '(uid=*)', '(uid={0}', '(o=\\ff{0})'])('the filter %j', (filter) => {
    for (const key of ['user-search-filter', 'group-search-filter']) {
      expect(problemsOf(load(`ldap.${key}: '${filter}'`))).toHaveLength(1);
    }
  });

  it('also in a list, with the place in it, and without a secret', () => {
    const yaml = `
ldap:
  - {enabled: true, url: ldaps://a, base-dn: dc=x, bind-password: hunter22}
  - enabled: true
    url: hunter22
    base-dn: dc=x
    hunter22: 1
`;
    expect(problemsOf(load(yaml))).toEqual([
      'postern.yaml:7:15: ldap[1].hunter22: unknown key',
      'postern.yaml:5:10: ldap[1].url: expected ldap://host:port or ldaps://host:port',
    ]);
    expect(problemsOf(load(yaml.split('\n').slice(0, 3).join('\n')))).toEqual([
      'postern.yaml:3:5: ldap[0].bind-dn: required with ldap.bind-password',
    ]);
    const twice =
      'ldap: [{enabled: true, url: ldaps://a, base-dn: dc=x, domain: a}, {enabled: true, url: ldaps://b, base-dn: dc=x, domain: b}]';
    expect(problemsOf(load(twice))).toEqual([
      'postern.yaml:1:67: ldap[1].name: expected a unique name for each directory',
    ]);
    expect(problemsOf(load('ldap: []', { POSTERN_LDAP_URL: 'ldap://a' }))).toEqual([
      'POSTERN_LDAP_URL: ldap is a list: set this in one of its entries',
    ]);
    expect(settings('ldap: {enabled: true, url: hunter22}', { POSTERN_LDAP: '[]' })).toEqual([]);
    expect(problemsOf(loadConfig({ env: { POSTERN_LDAP: '{}' } }))).toEqual([
      'POSTERN_LDAP: expected a list of maps of ldap settings as JSON',
    ]);
  });
});

describe('of several directories', () => {
  const ON = 'enabled: true, url: ldaps://a, base-dn: dc=x';

  it('each has a domain of its own, or takes names without one by its configuration', () => {
    const without = `ldap:\n  - {name: a, ${ON}, domain: a}\n  - {name: b, ${ON}}`;
    expect(problemsOf(load(without))).toEqual([
      'postern.yaml:3:5: ldap[1].domain: required with several directories, or ldap.names-without-domain: true for one of them',
    ]);
    expect(settings(without.replace(/}$/, ', names-without-domain: true}'))).toHaveLength(2);
    expect(settings(without.replace(/}$/, ', domain: b}'))).toHaveLength(2);
    expect(settings(`ldap:\n  - {name: a, ${ON}}\n  - {name: b, url: ldaps://a, base-dn: dc=x}`)).toHaveLength(1);
    expect(problemsOf(load(`ldap:\n  - {name: a, ${ON}, domain: [A, x]}\n  - {name: b, ${ON}, domain: a}`))).toEqual([
      'postern.yaml:3:69: ldap[1].domain: expected domains that no other directory has, but a also belongs to a',
    ]);
  });

  it('only the last that takes names without a domain may bind by a pattern, which sends the password first', () => {
    const pattern = 'names-without-domain: true, user-dn-pattern: "uid={0},dc=x"';
    const both = (one: string, other: string): string =>
      `ldap:\n  - {name: a, ${ON}, ${one}}\n  - {name: b, ${ON}, ${other}}`;
    expect(problemsOf(load(both(pattern, 'names-without-domain: true')))).toEqual([
      expect.stringMatching(
        /^postern\.yaml:2:\d+: ldap\[0\]\.names-without-domain: expected false with ldap\.user-dn-pattern/,
      ),
    ]);
    expect(settings(both('names-without-domain: true', pattern))).toHaveLength(2);
    expect(settings(both(pattern, 'domain: b'))).toHaveLength(2);
  });
});

it('an attribute for groups is refused at OpenLDAP, where it is not read, and taken where it is', () => {
  const yaml =
    'ldap: {enabled: true, url: ldaps://a, base-dn: dc=x, type: openldap, attribute-mapping: {groups: isMemberOf}}';
  expect(problemsOf(load(yaml))).toEqual([
    'postern.yaml:1:70: ldap.attribute-mapping: the groups attribute is read only with ldap.member-of: trusted',
  ]);
  expect(settings(yaml.replace(/}$/, ', member-of: trusted}'))).toHaveLength(1);
  expect(settings(yaml.replace('openldap', '389ds'))).toHaveLength(1);
});
