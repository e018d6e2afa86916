import { type Rotation, rotateSigningKey } from '../iam/auth/rotate-signing-key.ts';
import { rotationTimes } from '../identity/signing-key-plan.ts';
import { checkSecretKey } from '../store/meta.ts';
import type { Arguments } from './arguments.ts';
import { printed } from './output.ts';
import { stoppedBefore } from './terminal.ts';
import { withStore } from './with-store.ts';

/** Begins a rotation and prints its schedule. Running servers apply it by themselves and reject no valid token. */
export async function rotateSigningKeyCommand(args: Arguments): Promise<number> {
  const rotation = await withStore(args, async ({ db, secretKey }, { config }, parts) => {
    // The servers could not open a key that is sealed with another secret-key.
    await checkSecretKey(db, secretKey);
    const stopped = await stoppedBefore(
      'This command publishes a new signing key, which signs all new tokens a day later.',
      args,
    );
    if (stopped !== undefined) return stopped;
    const times = rotationTimes(config.token.accessTtlMs);
    return rotateSigningKey({ ...parts, secretKey, times });
  });
  if (typeof rotation === 'number') return rotation;
  return printed(timetable(rotation));
}

function timetable({ made, current, next }: Rotation): string {
  if (next === undefined) return `Created the first signing key: ${current}. It signs all new tokens.\n`;
  const [takeover, gone] = [next.signsFromMs, next.currentGoneMs].map((ms) => new Date(ms).toISOString());
  const lines = [
    made ? `Published:  ${next.kid}` : `Already published, nothing changed:  ${next.kid}`,
    `Signs from: ${takeover}. Until that time, ${current} signs.`,
    `After that, ${current} stays published for the tokens that it signed. It is removed after ${gone}.`,
    'All tokens stay valid during the rotation. You do not have to do anything else.',
  ];
  return `${lines.join('\n')}\n`;
}
