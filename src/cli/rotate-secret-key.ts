import { rotateSecretKey, type SecretKeyRotation } from '../iam/auth/rotate-secret-key.ts';
import type { Arguments } from './arguments.ts';
import { printed } from './output.ts';
import { stoppedBefore } from './terminal.ts';
import { withStore } from './with-store.ts';

/** Changes the database from `secret-key-previous` to `secret-key`. Prints the result and the next step. */
export async function rotateSecretKeyCommand(args: Arguments): Promise<number> {
  const rotation = await withStore(args, async (_store, { secrets }, parts) => {
    const { secretKeyPrevious: from, secretKey: to } = secrets;
    if (from === undefined || to === undefined || from === to) return undefined;
    const stopped = await stoppedBefore(
      'This command seals the database with secret-key in place of secret-key-previous.',
      args,
    );
    if (stopped !== undefined) return stopped;
    return rotateSecretKey({ ...parts, from, to });
  });
  if (rotation === undefined) {
    process.stderr.write(
      'Set secret-key to the new key and secret-key-previous to the former one, here and on every server, and restart them first.\n',
    );
    return 2;
  }
  if (typeof rotation === 'number') return rotation;
  return printed(linesOf(rotation));
}

function linesOf({ changed, signingKeys, clientSecrets, webhookSecrets, auditHead }: SecretKeyRotation): string {
  const left = signingKeys > 0 || clientSecrets > 0 || webhookSecrets > 0 || auditHead;
  const lines = [
    changed ? 'The database now uses the new secret-key.' : 'The database already used the new secret-key.',
    `Re-sealed: ${[
      `${signingKeys} signing keys`,
      ...(clientSecrets > 0 ? [`${clientSecrets} client secrets of issuers`] : []),
      ...(webhookSecrets > 0 ? [`${webhookSecrets} secrets of webhooks`] : []),
      ...(auditHead ? ['the head of the audit log'] : []),
    ].join(', ')}.`,
    nextStep(changed, left),
  ];
  return `${lines.join('\n')}\n`;
}

function nextStep(changed: boolean, left: boolean): string {
  if (changed) return 'Restart every server, one after another, then run this command again.';
  return left
    ? 'A server has written with the former key since the last run. After every server has restarted, run this command again.'
    : 'Nothing is sealed with the former key any longer. If every server has restarted since the first run, remove secret-key-previous from every server and restart the servers.';
}
