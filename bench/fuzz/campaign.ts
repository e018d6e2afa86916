/** Runs fuzzed checks through the whole gate and judges each answer. */

import { createCheckHandler } from '../../src/extauthz/check-handler.ts';
import { builtinRoutes, littleWorld } from '../../test/extauthz/support/little-world.ts';
import { createGenerator } from './generator.ts';
import { judge } from './judge.ts';
import { createRandom } from './random.ts';

export interface Campaign {
  /** How often each outcome came. */
  readonly outcomes: ReadonlyMap<string, number>;
  /** The first complaints, with the message that caused each, in hexadecimal. */
  readonly complaints: readonly { readonly complaint: string; readonly message: string }[];
}

const MAX_COMPLAINTS = 10;

/** @param progress called after every request with how many there were */
export function runCampaign(
  seed: number,
  requests: number,
  progress: (done: number) => void = () => undefined,
): Campaign {
  const world = littleWorld();
  const credentials = [world.ownedKey, world.tenantKey, world.userToken];
  const next = createGenerator(createRandom(seed), { valid: credentials.map((one) => `Bearer ${one}`) });
  let outcome: string | undefined;
  const gate = createCheckHandler({
    routes: builtinRoutes(),
    resolver: world.resolver,
    observer: {
      observe: ({ code }) => {
        outcome = code;
      },
    },
    trustedHops: 1,
    forwardCredential: false,
  });
  const outcomes = new Map<string, number>();
  const complaints: { complaint: string; message: string }[] = [];
  for (let done = 1; done <= requests && complaints.length < MAX_COMPLAINTS; done++) {
    const asked = next();
    outcome = undefined;
    const answer = gate(asked.bytes);
    if (answer instanceof Promise) throw new Error('a warm check waits for nothing');
    const { complaint } = judge(asked, answer, outcome, credentials);
    if (complaint !== undefined) complaints.push({ complaint, message: asked.bytes.toString('hex') });
    const name = outcome ?? 'none';
    outcomes.set(name, (outcomes.get(name) ?? 0) + 1);
    progress(done);
  }
  return { outcomes, complaints };
}
