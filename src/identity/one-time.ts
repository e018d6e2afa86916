/** One-time tokens, with which a user sets a first or a forgotten password. */

import { randomBytes } from 'node:crypto';
import type { RandomSource } from './api-keys.ts';
import { hasOpaqueForm, makeOpaqueToken, type OpaqueToken, opaqueDigest } from './opaque-tokens.ts';

export function makeOneTimeToken(random: RandomSource = randomBytes): OpaqueToken {
  return makeOpaqueToken('pst_', random);
}

export function isOneTimeToken(text: string): boolean {
  return hasOpaqueForm('pst_', text);
}

export function oneTimeDigest(text: string): Buffer {
  return opaqueDigest(text);
}
