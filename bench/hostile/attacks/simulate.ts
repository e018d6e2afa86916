/**
 * Attack 2: `explain/simulate` by a user without a role about itself, with proposed policies that take long to compile
 * and to match.
 */

import { type Attack, hammer, makeAttacker, mostAccepted } from '../attack.ts';
import { Connection } from '../connection.ts';
import { type GlobForm, hostileGlobs, hostileNames, type NameForm } from './globs.ts';

const CONNECTIONS = 4;
const PATH = '/v1/iam/explain/simulate';
const TRY_TIMEOUT_MS = 60_000;

interface Form {
  readonly policies: number;
  readonly globs: GlobForm;
  readonly names: NameForm;
}

const FORMS: readonly [Form, ...Form[]] = [
  { policies: 100, globs: { entries: 8, stars: 254, length: 512 }, names: { names: 400, length: 1000 } },
  { policies: 20, globs: { entries: 8, stars: 8, length: 256 }, names: { names: 32, length: 256 } },
  { policies: 4, globs: { entries: 8, stars: 8, length: 256 }, names: { names: 8, length: 128 } },
];

export const simulate: Attack = {
  number: 2,
  title: 'explain/simulate about oneself',
  async prepare(stand) {
    const token = await makeAttacker(stand);
    const connection = new Connection(stand.edge, '127.0.0.1');
    const form = await mostAccepted(FORMS, async (each) => {
      const request = { method: 'POST', path: PATH, authorization: `Bearer ${token}`, body: bodyOf(each, token) };
      const outcome = await connection.send(request, TRY_TIMEOUT_MS);
      return outcome.kind === 'reply' && outcome.status !== 413 && outcome.status !== 422;
    });
    connection.close();
    const body = bodyOf(form, token);
    return {
      credentials: [token],
      bodies: [body],
      form: `${form.policies} policies, ${Math.round(body.length / 1024)} KiB`,
    };
  },
  run({ edge }, { credentials = [], bodies = [] }, untilMs) {
    const [body = ''] = bodies;
    return hammer(
      edge,
      CONNECTIONS,
      { method: 'POST', path: PATH, authorization: `Bearer ${credentials[0]}`, body },
      untilMs,
    );
  },
};

function bodyOf({ policies, globs, names }: Form, token: string): string {
  const resources = hostileGlobs(globs, 'collections/');
  return JSON.stringify({
    credential: token,
    method: 'POST',
    path: '/v1/rag/query',
    body: JSON.stringify({ collections: hostileNames(names), query: 'x' }),
    policies: Array.from({ length: policies }, (_, i) => ({
      name: `p-${i}`,
      effect: 'deny',
      actions: ['*'],
      resources,
    })),
  });
}
