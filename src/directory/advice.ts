/** The advice for a failed step of a test. */

import type { TestStepName } from './model.ts';

interface Advice {
  /** Matches the detail of the failure. */
  readonly when: RegExp;
  readonly advice: string;
}

/** By step. The first entry that matches applies. */
const ADVICE: Readonly<Partial<Record<TestStepName, readonly Advice[]>>> = {
  connect: [
    { when: /ENOTFOUND|EAI_AGAIN/, advice: "Correct the host in ldap.url, or this machine's DNS server." },
    {
      when: /ECONNREFUSED|EHOSTUNREACH|ENETUNREACH/,
      advice:
        'Correct the host and port in ldap.url (389 for ldap://, 636 for ldaps://). Check that the server runs and that no firewall blocks the connection.',
    },
    {
      when: /did not answer|ETIMEDOUT/,
      advice: 'Check the host and port in ldap.url, and firewalls. If the server is only slow, raise ldap.timeout.',
    },
  ],
  tls: [
    {
      when: /SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|self-signed|unable to (?:verify|get)/i,
      advice: "Put the CA certificate of the server's certificate into a PEM file and name the file in ldap.ca-file.",
    },
    {
      when: /altnames|does not match|ERR_TLS_CERT_ALTNAME/i,
      advice: "In ldap.url, use a host name that is one of the subject alternative names of the server's certificate.",
    },
    { when: /expired/i, advice: 'Renew the certificate of the directory server.' },
    { when: /not yet valid/i, advice: 'Correct the clocks of this machine and of the directory server.' },
    {
      when: /StartTLS/,
      advice:
        'The server does not offer StartTLS. Give it a certificate, or use an ldaps:// URL and remove ldap.start-tls.',
    },
    {
      when: /wrong version|packet length|EPROTO|closed the connection|disconnected/i,
      advice:
        'The server does not speak TLS on this port. Use its ldaps port (usually 636), or ldap:// with ldap.start-tls.',
    },
    { when: /./, advice: 'Check the certificate of the directory server and ldap.ca-file.' },
  ],
  service_bind: [
    {
      when: /code (?:8|13)\b/,
      advice: 'The server accepts passwords over TLS only. Use ldaps://, or set ldap.start-tls to true.',
    },
    {
      when: /code 49\b.*data 52e|code 49\b|code 32\b|code 34\b/,
      advice: 'Correct ldap.bind-dn and ldap.bind-password.',
    },
    { when: /must be changed/, advice: 'Give the service account a password that does not expire.' },
    { when: /./, advice: 'Check that the service account in ldap.bind-dn exists and may log in.' },
  ],
  find_user: [
    { when: /the type of the directory/, advice: 'Set ldap.type: active-directory, openldap, freeipa or 389ds.' },
    {
      when: /authenticate[ds] /,
      advice:
        'Set ldap.domain to all names of the domain whose users may log in, such as [corp.example, CORP]. Users of other domains need a directory of their own in the configuration.',
    },
    {
      when: /code 1\b|code 50\b|authenticat/i,
      advice:
        'The directory does not allow anonymous reads. Set ldap.bind-dn and ldap.bind-password to an account that may read.',
    },
    {
      when: /code 32\b/,
      advice:
        'Correct ldap.user-search-base (or ldap.base-dn). It does not exist, or the account in ldap.bind-dn may not read it.',
    },
    {
      when: /several/,
      advice: 'Make ldap.user-search-base or ldap.user-search-filter narrower, so that it finds one entry per name.',
    },
    {
      when: /./,
      advice:
        "Check ldap.user-search-base and ldap.user-search-filter, and that the account in ldap.bind-dn may read the user's entry.",
    },
  ],
  attributes: [
    {
      when: /has \d+ values/,
      advice: 'Leave one value in the entry, and do not allow users to write this attribute of their own entry.',
    },
    {
      when: /not the only entry/,
      advice: 'Give each user a unique username, and do not allow users to write it in their own entry.',
    },
    {
      when: /shows no/,
      advice:
        "Allow the account that reads the entry (ldap.bind-dn, or the user) to read the operational attribute with the entry's id.",
    },
  ],
  groups: [
    { when: /code 32\b/, advice: 'Correct ldap.group-search-base. It does not exist, or the account may not read it.' },
    {
      when: /code (?:4|11)\b/,
      advice:
        "The search exceeds the server's limit of entries. Narrow the search, or raise the limit for the account in ldap.bind-dn.",
    },
  ],
};

/** For every step, after its own entries. */
const OF_ANY_STEP: readonly Advice[] = [
  { when: /did not answer/, advice: 'Raise ldap.timeout, or index the attributes of the filters on the server.' },
  { when: /./, advice: 'Read the log of the directory server about this connection.' },
];

export function adviceFor(step: TestStepName, detail: string): string {
  const found = [...(ADVICE[step] ?? []), ...OF_ANY_STEP].find(({ when }) => when.test(detail));
  return found?.advice ?? 'Read the log of the directory server.';
}
