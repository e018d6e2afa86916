/** The sentence that says what to change when a step of a test fails. */

import type { TestStep } from './model.ts';

type Step = TestStep['step'];

interface Line {
  readonly step: Step | 'any';
  readonly when: RegExp;
  readonly advice: string;
}

/** The first line that fits speaks. */
const LINES: readonly Line[] = [
  {
    step: 'connect',
    when: /ENOTFOUND|EAI_AGAIN/,
    advice: 'Correct the host in ldap.url, or the name server that this machine asks.',
  },
  {
    step: 'connect',
    when: /ECONNREFUSED|EHOSTUNREACH|ENETUNREACH/,
    advice:
      'Correct host and port in ldap.url (389 for ldap://, 636 for ldaps://), and check that the server runs and no firewall is between.',
  },
  {
    step: 'connect',
    when: /did not answer|ETIMEDOUT/,
    advice: 'Check host and port in ldap.url and firewalls on the way; where the server is merely slow, raise ldap.timeout.',
  },
  {
    step: 'tls',
    when: /SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|self-signed|unable to (?:verify|get)/i,
    advice: 'Put the certificate of the authority that issued the server’s into a PEM file and name it in ldap.ca-file.',
  },
  {
    step: 'tls',
    when: /altnames|does not match|ERR_TLS_CERT_ALTNAME/i,
    advice: 'Use a host name in ldap.url that the server’s certificate has among its alternative names.',
  },
  { step: 'tls', when: /expired/i, advice: 'Renew the certificate of the directory server.' },
  { step: 'tls', when: /not yet valid/i, advice: 'Set the clocks of this machine and of the directory server right.' },
  {
    step: 'tls',
    when: /StartTLS/,
    advice: 'The server does not offer StartTLS here: give it a certificate, or use an ldaps:// URL and remove ldap.start-tls.',
  },
  {
    step: 'tls',
    when: /wrong version|packet length|EPROTO|closed the connection|disconnected/i,
    advice: 'The server speaks no TLS on this port: use its ldaps port (mostly 636), or ldap:// with ldap.start-tls.',
  },
  { step: 'tls', when: /./, advice: 'Check the certificate of the directory server and ldap.ca-file.' },
  {
    step: 'service_bind',
    when: /code (?:8|13)\b/,
    advice: 'The server takes passwords over TLS only: use ldaps://, or set ldap.start-tls to true.',
  },
  {
    step: 'service_bind',
    when: /code 49\b.*data 52e|code 49\b|code 32\b|code 34\b/,
    advice: 'Correct ldap.bind-dn and ldap.bind-password.',
  },
  { step: 'service_bind', when: /must be changed/, advice: 'Give the service account a password that does not expire.' },
  { step: 'service_bind', when: /./, advice: 'Check the service account in ldap.bind-dn and that it may log in.' },
  {
    step: 'find_user',
    when: /the type of the directory/,
    advice: 'Set ldap.type: active-directory, openldap, freeipa or 389ds.',
  },
  {
    step: 'find_user',
    when: /authenticate[ds] /,
    advice:
      'Set ldap.domain to every name of the domain whose people may log in, such as [corp.example, CORP]. People of other domains need a directory of their own in the configuration.',
  },
  {
    step: 'find_user',
    when: /code 1\b|code 50\b|authenticat/i,
    advice: 'The directory lets no stranger read: set ldap.bind-dn and ldap.bind-password of an account that may.',
  },
  {
    step: 'find_user',
    when: /code 32\b/,
    advice: 'Correct ldap.user-search-base (or ldap.base-dn): it does not exist, or the account in ldap.bind-dn may not read it.',
  },
  {
    step: 'find_user',
    when: /several/,
    advice: 'Make ldap.user-search-base or ldap.user-search-filter narrower, so that it finds one entry per name.',
  },
  {
    step: 'find_user',
    when: /./,
    advice:
      'Check ldap.user-search-base and ldap.user-search-filter, and that the account in ldap.bind-dn may read the person’s entry.',
  },
  {
    step: 'attributes',
    when: /has \d+ values/,
    advice: 'Leave one value in the entry, and let nobody write this attribute of their own entry.',
  },
  {
    step: 'attributes',
    when: /not the only entry/,
    advice: 'Give each person a user name of their own, and let nobody write it in their own entry.',
  },
  {
    step: 'attributes',
    when: /shows no/,
    advice: 'Let whoever reads it (ldap.bind-dn, or the person) see the operational attribute that holds the entry’s id.',
  },
  { step: 'groups', when: /code 32\b/, advice: 'Correct ldap.group-search-base: it does not exist, or may not be read.' },
  {
    step: 'groups',
    when: /code (?:4|11)\b/,
    advice:
      'The server gives no more entries than its limit: make the search narrower, or raise the limit for the account in ldap.bind-dn.',
  },
  { step: 'any', when: /did not answer/, advice: 'Raise ldap.timeout, or index the attributes of the filters on the server.' },
  { step: 'any', when: /./, advice: 'Look into the log of the directory server for this connection.' },
];

export function adviceFor(step: Step, detail: string): string {
  const line = LINES.find((one) => (one.step === step || one.step === 'any') && one.when.test(detail));
  return line?.advice ?? 'Look into the log of the directory server.';
}
