/**
 * The password policy control (draft-behera-ldap-password-policy, section 6): the server's report about a password,
 * besides the result code.
 */

import { type BerReader, Control } from 'ldapts';
import { readElement, SEQUENCE } from './ber.ts';

/** Section 6.2, `error`. */
const ERRORS = ['password_expired', 'account_locked', 'change_after_reset'] as const;
export type PolicyError = (typeof ERRORS)[number];

const OID = '1.3.6.1.4.1.42.2.27.8.5.1';
const ERROR = 0x81;

/** Sent with a bind, never critical. The client sets it from the answer. */
export class PasswordPolicyControl extends Control {
  error: PolicyError | undefined;

  constructor() {
    super(OID);
  }

  override parseControl(reader: BerReader): void {
    this.error = readPolicyError(reader.remainingBuffer);
  }
}

/** Returns undefined for a value that it cannot read. Never throws. */
export function readPolicyError(value: Uint8Array): PolicyError | undefined {
  const whole = readElement(value);
  if (whole?.tag !== SEQUENCE || whole.rest.length > 0) return undefined;
  let rest = whole.content;
  for (let element = readElement(rest); element !== undefined; element = readElement(rest)) {
    if (element.tag === ERROR && element.content.length === 1) return ERRORS[element.content[0] ?? -1];
    rest = element.rest;
  }
  return undefined;
}
