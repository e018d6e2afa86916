/** The checks of conditions on claims that the schema does not make. Issuers and the proofs of keys have such conditions. */

import { isWithinBounds } from '../../decision/globs.ts';
import { MAX_GLOB_LENGTH, MAX_STARS } from '../../decision/limits.ts';
import type { FieldError } from '../../domain/problem-details.ts';
import type { ClaimRule } from '../../domain/records.ts';

/** Returns an error for a text that begins like a JSON pointer (RFC 6901) and is none. */
export function claimErrors(claim: string | undefined, path: string): readonly FieldError[] {
  if (claim?.startsWith('/') !== true || !/~(?![01])/.test(claim)) return [];
  return [{ path, message: 'In a JSON pointer, write ~0 for ~ and ~1 for a slash in a name.' }];
}

/** Returns an error for a glob beyond the bounds, which would match nothing. A value without stars has no such bounds. */
export function globErrors(text: string, path: string): readonly FieldError[] {
  if (!text.includes('*') || isWithinBounds(text)) return [];
  return [{ path, message: `A glob may have ${MAX_GLOB_LENGTH} characters and ${MAX_STARS} stars at most.` }];
}

export function claimRuleErrors(rules: readonly ClaimRule[], path: string): readonly FieldError[] {
  return rules.flatMap((rule, i) => [
    ...claimErrors(rule.claim, `${path}/${i}/claim`),
    ...rule.in.flatMap((value, at) => globErrors(value, `${path}/${i}/in/${at}`)),
  ]);
}
