/** The directories that people log in by. */
export const directory = {
  title: 'Directory',
  says: 'People sign in with the name and password of the directory. It gives them their roles and their tenant; nothing is written to it.',
  configured: 'Configured directories',
  statuses: { up: 'Answers', down: 'Does not answer', unknown: 'Not asked yet' },
  statusSays: {
    up: 'It answered the last login of this server.',
    down: 'It did not answer the last login of this server: its people cannot sign in. The test shows the step that fails.',
    unknown: 'No login needed it since this server started. The test shows whether it answers.',
  },
  test: 'Test a login',
  testSays: 'Goes through a login step by step. It signs no user in and creates none.',
  username: 'User name',
  usernameHint: 'As the person types it, such as alice or alice@corp.example.',
  password: 'Password',
  passwordHint:
    'Used for this test and forgotten. Without one, everything but the bind of the person is tried. A wrong one counts as a failed login, in the directory too.',
  name: 'Directory',
  nameHint: 'Its ldap.name. Empty: the one that a login with this name would ask first.',
  run: 'Run the test',
  running: 'Asking the directory',
  needsName: 'Give a user name.',
  before: 'What a test shows',
  beforeSays:
    'Whether the server reaches the directory, over which transport, whether its account may look people up, what it finds of a person, and which roles and tenant its groups give.',
  passage: 'The steps of the login',
  steps: {
    connect: 'connect',
    tls: 'tls',
    service_bind: 'service bind',
    find_user: 'find user',
    user_bind: 'user bind',
    attributes: 'attributes',
    groups: 'groups',
    roles: 'roles',
    tenant: 'tenant',
  },
  fails: 'fails here',
  advice: 'What to change',
  notReached: 'not reached',
  notTried: 'not tried',
  failed: 'fails',
  failedAt: 'The login fails at the step',
  canSignIn: 'can sign in',
  isFound: 'is found',
  withRoles: 'with the roles',
  withoutRoles: 'without any role',
  inTenant: 'in the tenant',
  noPassword: 'The password was not tried.',
  missing: {
    tls: 'The connection is not encrypted, so passwords travel in the clear. Use an ldaps:// URL, or set ldap.start-tls.',
    service_bind:
      'There is no service account (ldap.bind-dn): people cannot be looked up when a token is refreshed, nor daily.',
  },
  mapping: 'What becomes of the groups',
  mappingSays:
    'ldap.group-role-mapping gives roles, ldap.group-tenant-mapping the tenant. Groups are compared as whole DNs.',
  groups: 'Groups of the person',
  noGroups: 'none',
  roles: 'Roles',
  noRoles: 'none: no group is named in ldap.group-role-mapping',
  tenant: 'Tenant',
  found: 'The entry',
  dn: 'DN',
  type: 'Kind of directory',
  identity: 'Identity',
  loginName: 'Name here',
  email: 'E-mail',
  noEmail: 'none',
  fullName: 'Full name',
  state: 'Account',
  recent: 'The last tests',
  recentSmall: 'by all users, as the audit log has them',
  noRecent: 'No login was tested yet.',
  time: 'Time',
  by: 'By',
  who: 'Tested',
  outcome: 'Outcome',
  passed: 'All steps passed',
  stoppedAt: (step: string) => `Failed at ${step}`,
  notConfigured: 'No directory is configured',
  notConfiguredSays:
    'With a directory, people sign in with the account that they already have, and lose their access when they leave. Add a section like this to the configuration, restart the server, and come back to test it.',
  kinds: { 'active-directory': 'Active Directory', openldap: 'OpenLDAP', freeipa: 'FreeIPA', '389ds': '389 DS' },
  kind: 'Kind of directory',
  noSuch: (name: string) => `No directory is called ${name}. Leave the field empty to ask the first one.`,
  sample: {
    'active-directory': `ldap:
  enabled: true
  type: active-directory
  url: [ldaps://dc1.corp.example, ldaps://dc2.corp.example]
  ca-file: /etc/postern/directory-ca.pem
  base-dn: DC=corp,DC=example
  domain: [corp.example, CORP]
  bind-dn: svc-postern@corp.example
  bind-password-file: /etc/postern/directory-password
  group-role-mapping:
    "CN=AI Developers,OU=Groups,DC=corp,DC=example": developer`,
    openldap: `ldap:
  enabled: true
  type: openldap
  url: ldap://ldap.example.com
  start-tls: true
  ca-file: /etc/postern/directory-ca.pem
  base-dn: dc=example,dc=com
  bind-dn: cn=postern,ou=services,dc=example,dc=com
  bind-password-file: /etc/postern/directory-password
  user-search-base: ou=people,dc=example,dc=com
  group-search-base: ou=groups,dc=example,dc=com
  group-role-mapping:
    "cn=engineers,ou=groups,dc=example,dc=com": developer`,
    freeipa: `ldap:
  enabled: true
  type: freeipa
  url: [ldaps://ipa1.ipa.example, ldaps://ipa2.ipa.example]
  ca-file: /etc/ipa/ca.crt
  base-dn: dc=ipa,dc=example
  bind-dn: uid=postern,cn=sysaccounts,cn=etc,dc=ipa,dc=example
  bind-password-file: /etc/postern/directory-password
  user-search-base: cn=users,cn=accounts,dc=ipa,dc=example
  group-role-mapping:
    "cn=ai-developers,cn=groups,cn=accounts,dc=ipa,dc=example": developer`,
    '389ds': `ldap:
  enabled: true
  type: 389ds
  url: ldaps://ds.example.org
  ca-file: /etc/postern/directory-ca.pem
  base-dn: dc=example,dc=org
  bind-dn: uid=postern,ou=services,dc=example,dc=org
  bind-password-file: /etc/postern/directory-password
  user-search-base: ou=people,dc=example,dc=org
  group-role-mapping:
    "cn=engineers,ou=groups,dc=example,dc=org": developer`,
  },
} as const;
