/** E-mail addresses: unique across the platform, so there is one spelling of each. */

import { Refusal } from '../../domain/errors.ts';
import { brokenConstraint } from '../../store/faults.ts';

/** Lower case of an address that the schema let through, which is ASCII: PostgreSQL and JavaScript agree on it. */
export function canonicalEmail(email: string): string {
  return email.toLowerCase();
}

/** Runs a statement that fails when the address is another user's, wherever that user is. */
export async function withUniqueEmail<T>(statement: Promise<T>): Promise<T> {
  try {
    return await statement;
  } catch (error) {
    if (brokenConstraint(error) === 'users_email_key') {
      throw new Refusal('already_exists', 'A user with this email address already exists.', { param: 'email' });
    }
    throw error;
  }
}
