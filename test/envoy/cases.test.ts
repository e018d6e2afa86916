/**
 * The decisions demanded of the world of the cases, through everything: a real Envoy, the gate, tokens and keys, the
 * cache, a real database.
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CaseStand, startCaseStand } from '../support/case-stand.ts';
import { type Edge, startEdge } from '../support/envoy.ts';
import { loadCases } from '../support/world.ts';

const carried = loadCases().cases.filter((one) => one.only !== 'direct');

let edge: Edge;
let stand: CaseStand;

beforeAll(async () => {
  stand = await startCaseStand();
  edge = await startEdge(stand);
});

afterAll(async () => {
  await edge?.stop();
  await stand?.close();
});

describe('the decisions demanded of the world of the cases, through a real Envoy', () => {
  test.each(carried.map((one) => [one.name, one] as const))('%s', async (_, one) => {
    const answer = await stand.send(edge.url, one);
    const said = JSON.parse(answer.body);
    expect([answer.status, said.server === 'upstream' ? 'allow' : said.code]).toEqual([
      one.expect.status,
      one.expect.code,
    ]);
  });
});
