/**
 * Reads a request body as a form: `application/x-www-form-urlencoded` in UTF-8 (WHATWG URL, section 5), no repeated
 * parameter (RFC 6749, section 3.2), bounded structure.
 */

import { Refusal } from '../domain/errors.ts';
import { BODY_BOUNDS } from './body-structure.ts';

export const FORM = 'application/x-www-form-urlencoded';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Returns the parameters by name.
 * @throws Refusal `invalid_parameter` for a body that is no such form
 */
export function parseForm(bytes: Uint8Array): Readonly<Record<string, string>> {
  const fields = new URLSearchParams(textOf(bytes));
  if (fields.size > BODY_BOUNDS.maxMembers)
    throw malformed(`The form has more than ${BODY_BOUNDS.maxMembers} parameters.`);
  const form = new Map<string, string>();
  for (const [name, value] of fields) {
    if (form.has(name)) throw malformed('The form repeats a parameter.');
    form.set(name, value);
  }
  return Object.fromEntries(form);
}

function textOf(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw malformed('The form is not valid UTF-8.');
  }
}

function malformed(detail: string): Refusal {
  return new Refusal('invalid_parameter', detail);
}
