/**
 * A right that has ended writes nothing, at any endpoint of the API's description and however it ended, through Envoy:
 * while the request's body is held back, and while its transaction waits for the one that ends the right.
 */

import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { send } from '../support/http.ts';
import { share } from '../support/properties.ts';
import { blocks } from './rights/blocks.ts';
import { type Case, makeCase } from './rights/cases.ts';
import { answerTo, concerns, ENDINGS, type Ending, needsPlatformAdmin } from './rights/endings.ts';
import { OPERATIONS, type Operation, type SampleRequest, sampleRequest } from './rights/samples.ts';
import { forEach, type Stand, startStand } from './rights/stand.ts';

const TIMEOUT_MS = 60_000;
const POLL_MS = 5;

let stand: Stand;
beforeAll(async () => {
  stand = await startStand();
}, TIMEOUT_MS);
afterAll(async () => {
  await stand.close();
});

interface Ended {
  /** `<status> <code>` */
  readonly answer: string;
  /** Tables that the request wrote. */
  readonly wrote: readonly string[];
}

/** How a right ends while its request is under way. */
type Way = (of: Case, ending: Ending, sample: SampleRequest) => Promise<Ended>;

const whileBodyIsHeldBack: Way = async (of, ending, sample) => {
  const { h, outside, stored } = stand;
  const admitted = stand.admitted(of);
  const sending = stand.begin(sample, of.credential);
  await Promise.race([admitted.then(() => nextTurn()), sending.answer]);
  if (ending.byApi === undefined) {
    await outside.knex.raw(ending.sql(of));
    const me = () => h.api('GET', '/v1/auth/me', { as: of.credential });
    await expect.poll(async () => (await me()).status, { timeout: 5000 }).not.toBe(200);
  } else expect((await ending.byApi(h, of)).status).toBeLessThan(300);
  const before = await stored(outside.knex, of);
  sending.finish();
  const { outcome } = await sending.answer;
  return { answer: outcome, wrote: difference(before, await stored(outside.knex, of)) };
};

const whileTransactionWaits: Way = async (of, ending, sample) => {
  const { outside, stored } = stand;
  const trx = await outside.knex.transaction();
  try {
    await trx.raw(ending.sql(of));
    const { rows } = await trx.raw<{ rows: { pid: number }[] }>('select pg_backend_pid() as pid');
    const before = await stored(trx, of);
    const sending = stand.begin(sample, of.credential);
    sending.finish();
    let answered = false;
    const done = sending.answer.finally(() => {
      answered = true;
    });
    while (!answered && !(await blocks(outside, rows[0]?.pid ?? 0))) await sleep(POLL_MS);
    await trx.commit();
    const { outcome } = await done;
    return { answer: outcome, wrote: difference(before, await stored(outside.knex, of)) };
  } finally {
    if (!trx.isCompleted()) await trx.rollback();
  }
};

function difference(before: Readonly<Record<string, string>>, after: Readonly<Record<string, string>>): string[] {
  return Object.keys(after).filter((table) => after[table] !== before[table]);
}

const WAYS = [
  // Requests that only read run without a transaction, so only this way applies to them.
  ['while its body is held back', whileBodyIsHeldBack, () => true],
  ['while its transaction waits', whileTransactionWaits, ({ onlyReads }: Operation) => !onlyReads],
] as const;

const titleOf = ({ method, path }: Operation): string => `${method} ${path}`;

describe.each(['session', 'key'] as const)('a caller by %s', (caller) => {
  test('can use every tested endpoint while it has its permission', { timeout: TIMEOUT_MS }, async () => {
    const usable = OPERATIONS.filter((operation) => ENDINGS.some((ending) => concerns(ending, caller, operation)));
    const answers = await forEach(usable, titleOf, async (operation) => {
      const of = await makeCase(stand.h, caller, needsPlatformAdmin(operation));
      const sending = stand.begin(sampleRequest(operation, of), of.credential);
      sending.finish();
      return (await sending.answer).outcome;
    });
    expect(Object.entries(answers).filter(([, answer]) => !answer.startsWith('2'))).toEqual([]);
    expect(usable.length).toBeGreaterThan(caller === 'session' ? 30 : 20);
  });

  for (const [n, ending] of ENDINGS.filter(({ callers }) => callers.includes(caller)).entries()) {
    test.each(WAYS)(`writes nothing when ${ending.name} %s`, { timeout: TIMEOUT_MS }, async (_when, way, takesPart) => {
      const concerned = share(OPERATIONS, n).filter(
        (operation) => concerns(ending, caller, operation) && takesPart(operation),
      );
      const results = await forEach(concerned, titleOf, async (operation) => {
        const of = await makeCase(stand.h, caller, needsPlatformAdmin(operation));
        return way(of, ending, sampleRequest(operation, of));
      });
      const expected = concerned.map((operation) => {
        const answer = answerTo(ending, caller, operation);
        // An escalation leaves the audit row that it was refused.
        return [titleOf(operation), { answer, wrote: answer === '403 escalation' ? ['audit_log'] : [] }];
      });
      expect(results).toEqual(Object.fromEntries(expected));
    });
  }
});

describe('the secret of a key that a rotation replaced, in its grace', () => {
  const rotated = async (): Promise<Case> => {
    const of = await makeCase(stand.h, 'key', false);
    const body = { grace_seconds: 3600 };
    const reply = await stand.h.api('POST', `/v1/iam/api-keys/${of.keyId}/rotate`, {
      as: stand.h.root.token,
      tenant: of.own,
      body,
    });
    expect(reply.status).toBe(200);
    return of;
  };

  test('writes nothing at any endpoint under /v1/iam, and the answer says why', { timeout: TIMEOUT_MS }, async () => {
    const writing = OPERATIONS.filter(({ path, onlyReads }) => path.startsWith('/v1/iam/') && !onlyReads);
    const answers = await forEach(writing, titleOf, async (operation) => {
      const of = await rotated();
      const before = await stand.stored(stand.outside.knex, of);
      const sending = stand.begin(sampleRequest(operation, of), of.credential);
      sending.finish();
      const { outcome, detail } = await sending.answer;
      return [outcome, detail, ...difference(before, await stand.stored(stand.outside.knex, of))];
    });
    const refused = [
      '401 invalid_credential',
      'This secret of the API key was rotated. Use the new secret for changes.',
    ];
    expect(answers).toEqual(Object.fromEntries(writing.map((operation) => [titleOf(operation), refused])));
  });

  test('works at the gate, for reads, and to ask for explanations', async () => {
    const of = await rotated();
    const headers = { authorization: `Bearer ${of.credential}` };
    for (const path of ['/v1/models', '/v1/auth/me', '/v1/iam/users', `/v1/iam/api-keys/${of.keyId}`]) {
      expect([path, (await send(stand.edge.url, { path, headers })).status]).toEqual([path, 200]);
    }
    for (const operation of OPERATIONS.filter(({ onlyReads }) => onlyReads)) {
      const { method, path, body } = sampleRequest(operation, of);
      const answer = await send(stand.edge.url, {
        method,
        path,
        body,
        headers: { ...headers, 'content-type': 'application/json' },
      });
      expect([path, answer.status]).toEqual([path, 200]);
    }
  });
});
