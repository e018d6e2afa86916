/**
 * The check of a directory's user that proves itself again. Postern stores no username, so the directory first names the
 * account. Then it checks the password as in a login, which must prove the same account.
 */

import type { UserId } from '../../domain/ids.ts';
import { directoryIdentityOf } from '../users/directory-queries.ts';
import { directorySubject } from './directory-login.ts';
import { queryDirectory } from './directory-service.ts';
import type { AuthParts } from './parts.ts';

interface DirectoryCheck {
  /** The subject of failures, as in a login. */
  readonly subject: string;
  /** Rejects with a Fault if the directory does not respond. */
  readonly isRight: () => Promise<boolean>;
}

/**
 * @returns undefined if no configured directory shows the user's account, so that no password can be checked
 * @throws Fault if the directory does not respond; Refusal `unavailable`
 */
export async function directoryCheck(
  { db, directory: service }: Pick<AuthParts, 'db' | 'directory'>,
  userId: UserId,
  password: string,
): Promise<DirectoryCheck | undefined> {
  const identity = await directoryIdentityOf(db.knex, userId);
  if (identity === undefined || service === undefined) return undefined;
  const { directory, stableId } = identity;
  const { directories } = service;
  const found = await queryDirectory(service, 'refresh', directory, () => directories.lookup(directory, stableId));
  if (found.kind === 'gone') return undefined;
  const { username } = found.person;
  return {
    subject: directorySubject(username),
    isRight: async () => {
      const answer = await queryDirectory(service, 'login', directory, () =>
        directories.authenticate(username, password),
      );
      if (answer.kind !== 'proved') return false;
      return answer.person.directory === directory && answer.person.stableId === stableId;
    },
  };
}
