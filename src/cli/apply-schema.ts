/** Checks the form of a setup file, with advice for unknown members. */

import type { TSchema } from 'typebox';
import { didYouMean } from '../config/config-error.ts';
import { ownMember } from '../domain/json.ts';
import type { FieldError } from '../domain/problem-details.ts';
import { type Validated, validatorOf } from '../http/validation.ts';
import { SETUP_SCHEMA, type SetupDocument } from '../iam/setup/document.ts';

const validate = validatorOf(SETUP_SCHEMA);

/** @param short the input is small enough to look for all its errors rather than the first */
export function checkForm(value: unknown, short: boolean): Validated<SetupDocument> {
  const checked = validate(value, short);
  return checked.kind === 'valid' ? checked : { kind: 'invalid', errors: checked.errors.map(withAdvice) };
}

const SECRET = /password|secret|token|hash|digest|(^|_)keys?$/i;

/** Replaces the message of an unknown member with advice about the member that was probably meant. */
function withAdvice(error: FieldError): FieldError {
  const steps = error.path.split('/').slice(1);
  const name = steps.at(-1);
  if (name === undefined) return error;
  const members = membersAt(SETUP_SCHEMA, steps.slice(0, -1));
  if (members.length === 0 || members.includes(name)) return error;
  if (SECRET.test(name))
    return { ...error, message: 'This member is unknown, and this file must not contain secrets.' };
  const meant = didYouMean(name, members);
  return { ...error, message: meant === '' ? 'This member is unknown.' : `This member is unknown${meant}` };
}

function membersAt(schema: TSchema, steps: readonly string[]): readonly string[] {
  let at: unknown = schema;
  for (const step of steps) at = ownMember(ownMember(at, 'properties'), step) ?? ownMember(at, 'items');
  return Object.keys(Object(ownMember(at, 'properties')));
}
