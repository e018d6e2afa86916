/** Attack 3: a key and a deny policy with globs of many stars, and queries that name many collections. */

import { ATTACKER, type Attack, hammer, makeAttacker, mostAccepted } from '../attack.ts';
import { Connection } from '../connection.ts';
import type { Stand } from '../stand.ts';
import { GLOB_FORMS, type GlobForm, hostileGlobs, hostileNames, NAME_FORMS, type NameForm } from './globs.ts';

const CONNECTIONS = 2;
/** Without the bounds, one such decision took 3.3 s, so that two connections got 0.6 a second. */
const PER_SECOND = 10;
const PATH = '/v1/rag/query';
const TRY_TIMEOUT_MS = 60_000;

export const globKey: Attack = {
  number: 3,
  title: 'globs of many stars, and a query of many collections',
  async prepare(stand) {
    await makeAttacker(stand);
    let key = '';
    const globs = await mostAccepted(GLOB_FORMS, async (form) => {
      const members = { scopes: ['rag:*'], resource_constraints: { collections: hostileGlobs(form) } };
      const made = await stand.administrator.call(
        'POST',
        '/v1/iam/api-keys',
        { description: 'x', expires_in_days: 1, ...members },
        inTenant,
      );
      key = String(made.body['key']);
      return made.status === 201 && (await makePolicy(stand, form));
    });
    const names = await mostAccepted(NAME_FORMS, (form) => isAccepted(stand, key, form));
    const form = `${globs.entries} globs of ${globs.stars} stars, ${names.names} collections`;
    return { credentials: [key], bodies: [bodyOf(names)], form };
  },
  run({ edge }, { credentials = [], bodies = [] }, untilMs) {
    const [body = ''] = bodies;
    return hammer(
      edge,
      CONNECTIONS,
      { method: 'POST', path: PATH, authorization: `Bearer ${credentials[0]}`, body },
      untilMs,
      PER_SECOND,
    );
  },
};

const inTenant = { 'x-tenant-id': ATTACKER };

async function makePolicy({ administrator }: Stand, form: GlobForm): Promise<boolean> {
  const resources = hostileGlobs(form, 'collections/');
  const policy = { name: 'globs', effect: 'deny', actions: ['*'], resources };
  return (await administrator.call('POST', '/v1/iam/policies', policy, inTenant)).status === 201;
}

/** A request that takes too long to decide was accepted, too. */
async function isAccepted({ edge }: Stand, key: string, form: NameForm): Promise<boolean> {
  const connection = new Connection(edge, '127.0.0.1');
  const request = { method: 'POST', path: PATH, authorization: `Bearer ${key}`, body: bodyOf(form) };
  const outcome = await connection.send(request, TRY_TIMEOUT_MS);
  connection.close();
  return outcome.kind === 'lost' || outcome.status !== 400;
}

function bodyOf(form: NameForm): string {
  return JSON.stringify({ collections: hostileNames(form), query: 'x' });
}
