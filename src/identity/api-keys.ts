/**
 * The API key's text: `psk_`, 32 random characters of 0-9A-Za-z, and six more that are the CRC32 of all before them. The checksum lets
 * a mistyped or made-up key be refused without a look-up, and secret scanners be sure of what they found. It protects nothing else.
 */

import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { KeyDigest } from '../domain/ids.ts';

/** Gives that many bytes from a secure source. */
export type RandomSource = (size: number) => Uint8Array;

export const API_KEY_PREFIX = 'psk_';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_LENGTH = 32;
const CHECKSUM_LENGTH = 6;
const LENGTH = API_KEY_PREFIX.length + RANDOM_LENGTH + CHECKSUM_LENGTH;
/** Bytes from here on would make the first characters of the alphabet likelier than the others (256 is no multiple of 62). */
const UNBIASED_BELOW = 256 - (256 % ALPHABET.length);

export interface ApiKey {
  /** The whole key: shown once, then forgotten. */
  readonly text: string;
  readonly digest: KeyDigest;
  /** The first eight characters and the last four: what lists show of a key. */
  readonly prefix: string;
  readonly lastFour: string;
}

export function makeApiKey(random: RandomSource = randomBytes): ApiKey {
  const body = API_KEY_PREFIX + randomCharacters(random);
  const text = body + checksumOf(body);
  return { text, digest: digestOf(text), prefix: text.slice(0, API_KEY_PREFIX.length + 4), lastFour: text.slice(-4) };
}

/** The value of each character as a digit of base 62; 62 for those that are none. By character code. */
const DIGIT = new Uint8Array(128).fill(ALPHABET.length);
for (let value = 0; value < ALPHABET.length; value++) DIGIT[ALPHABET.charCodeAt(value)] = value;

/** CRC32 (ISO 3309, as zlib's) of each byte alone. A call into zlib costs more than the 36 steps of a key. */
const CRC = Int32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit++) rest = (rest & 1) === 0 ? rest >>> 1 : (rest >>> 1) ^ 0xedb88320;
  return rest;
});

/** True when the text has a key's length and characters and its checksum is right. Says nothing about whether the key exists. */
export function hasValidChecksum(text: string): boolean {
  if (text.length !== LENGTH || !text.startsWith(API_KEY_PREFIX)) {
    return false;
  }
  let crc = -1;
  let claimed = 0;
  for (let at = 0; at < LENGTH; at++) {
    const code = text.charCodeAt(at);
    const digit = DIGIT[code] ?? ALPHABET.length;
    if (digit === ALPHABET.length && at >= API_KEY_PREFIX.length) {
      return false;
    }
    if (at < LENGTH - CHECKSUM_LENGTH) {
      crc = (crc >>> 8) ^ (CRC[(crc ^ code) & 0xff] ?? 0);
    } else {
      claimed = claimed * ALPHABET.length + digit;
    }
  }
  return claimed === ~crc >>> 0;
}

/** The form in which a key is stored and looked up: SHA-256 of its whole text in hexadecimal, which is what a KeyDigest is. */
export function digestOf(text: string): KeyDigest {
  return hash('sha256', text, 'hex') as KeyDigest;
}

function randomCharacters(random: RandomSource): string {
  let characters = '';
  while (characters.length < RANDOM_LENGTH) {
    for (const byte of random(RANDOM_LENGTH)) {
      if (byte < UNBIASED_BELOW && characters.length < RANDOM_LENGTH) {
        characters += ALPHABET.charAt(byte % ALPHABET.length);
      }
    }
  }
  return characters;
}

/** Six base-62 digits hold any CRC32: 62^6 is more than 2^32. */
function checksumOf(body: string): string {
  let digits = '';
  for (let rest = crc32(body); digits.length < CHECKSUM_LENGTH; rest = Math.floor(rest / ALPHABET.length)) {
    digits = ALPHABET.charAt(rest % ALPHABET.length) + digits;
  }
  return digits;
}
