/**
 * The text of an API key: `psk_`, 32 random characters of 0-9A-Za-z, and six characters with the CRC32 of everything
 * before them. With the checksum the server rejects a mistyped or invented key without a lookup, and secret scanners
 * recognize keys. It protects nothing else.
 */

import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { KeyDigest, KeyId } from '../domain/ids.ts';

/** Returns `size` bytes from a secure source. */
export type RandomSource = (size: number) => Uint8Array;

export const API_KEY_PREFIX = 'psk_';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_LENGTH = 32;
const CHECKSUM_LENGTH = 6;
const LENGTH = API_KEY_PREFIX.length + RANDOM_LENGTH + CHECKSUM_LENGTH;
/**
 * Bytes from this value would make the first characters of the alphabet more likely than the others (256 is not a
 * multiple of 62).
 */
const UNBIASED_BELOW = 256 - (256 % ALPHABET.length);

interface GeneratedApiKey {
  /** The whole key, which is shown once and not stored. */
  readonly text: string;
  readonly digest: KeyDigest;
  /** The first eight characters and the last four, which lists show. */
  readonly prefix: string;
  readonly lastFour: string;
}

export function makeApiKey(random: RandomSource = randomBytes): GeneratedApiKey {
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

/** Reports whether the text has a key's length and characters and a correct checksum. The key may not exist. */
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

/** Returns the form in which a key is stored and looked up: SHA-256 of its whole text in hexadecimal, a KeyDigest. */
export function digestOf(text: string): KeyDigest {
  return hash('sha256', text, 'hex') as KeyDigest;
}

/**
 * Returns the digest of a key without a secret, which a token of an issuer proves. No header can carry a NUL, so no
 * client can send a text with this digest.
 */
export function digestOfProof(id: KeyId): KeyDigest {
  return digestOf(`\0proof\0${id}`);
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
