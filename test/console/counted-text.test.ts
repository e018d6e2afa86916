/** Sentences with a number, in the singular. */

import { expect, it } from 'vitest';
import { audit } from '../../console/src/text/en/audit.ts';
import { budgets } from '../../console/src/text/en/budgets.ts';
import { rates } from '../../console/src/text/en/rates.ts';
import { session } from '../../console/src/text/en/session.ts';
import { trial } from '../../console/src/text/en/trial.ts';
import { usage } from '../../console/src/text/en/usage.ts';
import { webhooks } from '../../console/src/text/en/webhooks.ts';

it.each([
  [usage.says('1', '1'), '1 request, 1 token'],
  [usage.says('2', '1,000'), '2 requests, 1,000 tokens'],
  [audit.sealed('1', '1'), 'The chain seals 1 row of all tenants in 1 seal, the newest'],
  [audit.noSeal('1'), 'No seal yet: 1 row waits for the first.'],
  [rates.said.requests('1'), '1 request a minute'],
  [rates.said.tokens('1'), '1 token a minute'],
  [budgets.summary.requests('1'), '1 request'],
  [budgets.summary.tokens('1'), '1 token'],
  [webhooks.droppedSays('1'), '1 event was left out, because 10,000 deliveries waited.'],
  [trial.sampled('1').slice(0, 22), '1 decision is beyond t'],
  [session.locked(1).split('.')[1], ' Try again in 1 second, or ask an administrator to unlock the account'],
])('%s', (says, expected) => {
  expect(says).toBe(expected);
});
