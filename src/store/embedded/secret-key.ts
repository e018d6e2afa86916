import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { reasonOf } from '../../domain/errors.ts';
import { EmbeddedError } from './error.ts';
import { makeFolders, readOrCreate } from './files.ts';

const MIN_CHARACTERS = 32;

/**
 * Returns the secret key of an embedded database. The first use creates it: 48 random bytes, readable only by the
 * owner.
 * @param create false: rejects with an EmbeddedError if there is none
 */
export async function embeddedSecretKey(dataDir: string, create = true): Promise<string> {
  const path = join(dataDir, 'secret-key');
  let key: string;
  try {
    if (create) await makeFolders(dataDir, 0o711);
    const made = () => `${randomBytes(48).toString('base64url')}\n`;
    key = (await (create ? readOrCreate(path, made) : readFile(path, 'utf8'))).trim();
  } catch (error) {
    throw new EmbeddedError(
      `The secret key ${path} can be neither read nor created (${reasonOf(error)}). Give this user access to it.`,
    );
  }
  if (key.length < MIN_CHARACTERS) {
    throw new EmbeddedError(
      `${path} holds fewer than ${MIN_CHARACTERS} characters. Restore the secret key from a backup. Without it, Postern cannot read the data that it sealed with the key.`,
    );
  }
  return key;
}
