/**
 * The password policy control (draft-behera-ldap-password-policy, section 6): the server's report about a password,
 * besides the result code.
 */

import { type BerReader, Control } from 'ldapts';

/** Section 6.2, `error`. */
const ERRORS = ['password_expired', 'account_locked', 'change_after_reset'] as const;
export type PolicyError = (typeof ERRORS)[number];

const OID = '1.3.6.1.4.1.42.2.27.8.5.1';
const SEQUENCE = 0x30;
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

interface Element {
  readonly tag: number;
  readonly content: Uint8Array;
  readonly rest: Uint8Array;
}

/**
 * Reads the first element, with either definite form of its length (X.690, section 8.1.3): 389 Directory Server writes
 * five bytes instead of one.
 */
function readElement(bytes: Uint8Array): Element | undefined {
  const [tag, first] = bytes;
  if (tag === undefined || first === undefined || first === 0x80) return undefined;
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
  const start = 2 + lengthBytes;
  if (lengthBytes > 4 || bytes.length < start) return undefined;
  const length = lengthBytes === 0 ? first : bytes.subarray(2, start).reduce((sum, byte) => sum * 256 + byte, 0);
  if (bytes.length < start + length) return undefined;
  return { tag, content: bytes.subarray(start, start + length), rest: bytes.subarray(start + length) };
}
