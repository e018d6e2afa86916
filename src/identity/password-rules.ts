/**
 * Rejects passwords by length and by how easily they are guessed, as NIST SP 800-63B, section 3.1.1.2 requires. There
 * are no rules about kinds of characters, because such rules make passwords worse.
 */

import { COMMON_PASSWORDS, COMMON_WORDS } from './common-passwords.ts';

export const MIN_PASSWORD_LENGTH = 15;
/** The minimum, in code points after normalization to NFC. */
export const MAX_PASSWORD_LENGTH = 256;

/** Longest unit whose repetitions are as weak as the unit. */
const MAX_REPEATED_UNIT = 8;
/** Sequences whose runs are weak, forwards and backwards, also across the end. */
const SEQUENCES = [
  '0123456789',
  'abcdefghijklmnopqrstuvwxyz',
  'qwertyuiop',
  'asdfghjkl',
  'zxcvbnm',
  'qwertyuiopasdfghjklzxcvbnm',
];
/** Columns of a keyboard, read down and from left to right. */
const COLUMNS = '1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p';
/** The shortest run that counts. A password is rejected if its runs leave at most this number of other characters. */
const MIN_RUN = 3;
const MIN_FREE_CHARACTERS = 4;

export interface PasswordOwner {
  readonly email?: string | undefined;
  readonly name?: string | undefined;
}

/** Returns the problems of a password, in sentences for its author; empty = it is accepted. */
export function passwordProblems(password: string, owner: PasswordOwner = {}): readonly string[] {
  const { length } = [...password.normalize('NFC')];
  if (length < MIN_PASSWORD_LENGTH) {
    return [`The password must have at least ${MIN_PASSWORD_LENGTH} characters.`];
  }
  if (length > MAX_PASSWORD_LENGTH) {
    return [`The password must have at most ${MAX_PASSWORD_LENGTH} characters.`];
  }
  // NFKC only here: wide and styled letters are the same guess.
  const folded = password.normalize('NFKC').toLowerCase();
  if (isCommon(folded) || isRepetition(folded) || isRuns(folded)) {
    return ['The password is too common and easy to guess. Choose another one.'];
  }
  if (isMadeOf(folded, owner)) {
    return ['The password must not be made from the email address or the name of the user.'];
  }
  return [];
}

/**
 * Reports whether the password is in the list, or is followed only by digits and signs that users append to satisfy a
 * rule.
 */
function isCommon(folded: string): boolean {
  const stem = folded.replace(/[0-9!@#$%^&*.?]+$/, '');
  return COMMON_PASSWORDS.has(folded) || COMMON_PASSWORDS.has(stem) || COMMON_WORDS.has(stem);
}

/** A text of repeated units continues, after the first unit, as it began. */
function isRepetition(folded: string): boolean {
  for (let unit = 1; unit <= MAX_REPEATED_UNIT; unit++) {
    if (folded.startsWith(folded.slice(unit))) {
      return true;
    }
  }
  return false;
}

/**
 * Reports whether the password consists of runs along the alphabet, the digits or a keyboard, except for a few
 * characters.
 */
function isRuns(folded: string): boolean {
  let free = 0;
  for (let at = 0; at < folded.length; ) {
    const run = runLengthAt(folded, at);
    free += run >= MIN_RUN ? 0 : 1;
    at += run >= MIN_RUN ? run : 1;
  }
  return free < MIN_FREE_CHARACTERS;
}

function runLengthAt(text: string, start: number): number {
  let longest = 1;
  for (const step of STEPS) {
    let end = start;
    while (end + 1 < text.length && step.has(text.slice(end, end + 2))) {
      end++;
    }
    longest = Math.max(longest, end - start + 1);
  }
  return longest;
}

/** The neighboring pairs of each sequence and direction. A repeated character is a run as well. */
const STEPS: readonly ReadonlySet<string>[] = [...SEQUENCES, COLUMNS].flatMap((sequence) => {
  const backwards = [...sequence].reverse().join('');
  return [pairsOf(sequence), pairsOf(backwards)];
});

function pairsOf(sequence: string): ReadonlySet<string> {
  const around = sequence + sequence.charAt(0);
  const pairs = Array.from(sequence, (_, index) => around.slice(index, index + 2));
  return new Set([...pairs, ...Array.from(sequence, (character) => character + character)]);
}

/**
 * Reports whether the letters and digits of the password come only from the email address, its parts, the name and
 * similar data.
 */
function isMadeOf(folded: string, { email, name }: PasswordOwner): boolean {
  const parts = [email, ...(email ?? '').split(/[@.+_-]/), ...(name ?? '').split(/\s+/)]
    .map((part) => (part ?? '').normalize('NFKC').toLowerCase())
    .filter((part) => part.length >= MIN_RUN)
    .sort((a, b) => b.length - a.length);
  if (parts.length === 0) {
    return false;
  }
  let rest = folded;
  for (const part of parts) {
    rest = rest.replaceAll(part, '');
  }
  return rest.length < folded.length && [...rest.replace(/[^\p{L}\p{N}]/gu, '')].length < MIN_FREE_CHARACTERS;
}
