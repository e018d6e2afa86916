/** The checks of conditions on claims that the schema does not make. Issuers and the proofs of keys have such conditions. */

import { MAX_STARS } from '../../decision/limits.ts';
import type { FieldError } from '../../domain/problem-details.ts';
import type { ClaimRule } from '../../domain/records.ts';

/** Returns an error for a text that begins like a JSON pointer (RFC 6901) and is none. */
export function claimErrors(claim: string | undefined, path: string): readonly FieldError[] {
  if (claim?.startsWith('/') !== true || !/~(?![01])/.test(claim)) return [];
  return [{ path, message: 'In a JSON pointer, write ~0 for ~ and ~1 for a slash in a name.' }];
}

/** Returns an error for a text with more stars than a glob may have. */
export function globErrors(text: string, path: string): readonly FieldError[] {
  if (text.split('*').length <= MAX_STARS + 1) return [];
  return [{ path, message: `A value may have ${MAX_STARS} stars at most.` }];
}

export function claimRuleErrors(rules: readonly ClaimRule[], path: string): readonly FieldError[] {
  return rules.flatMap((rule, i) => [
    ...claimErrors(rule.claim, `${path}/${i}/claim`),
    ...rule.in.flatMap((value, at) => globErrors(value, `${path}/${i}/in/${at}`)),
  ]);
}
