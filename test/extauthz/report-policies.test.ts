/** Report-only policies at the gate: the answer of a check has the same bytes with and without them. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { buildRouteTable } from '../../src/decision/routes.ts';
import { createCheckHandler } from '../../src/extauthz/check-handler.ts';
import type { CheckOutcome } from '../../src/telemetry/check-outcome.ts';
import { reportedEffect } from '../../src/telemetry/check-outcome.ts';
import {
  extraLines,
  principalArbitrary,
  type RandomPrincipal,
  type RandomRequest,
  type RandomWorld,
  randomIdentity,
  randomSnapshot,
  reportingWorldArbitrary,
  requestArbitrary,
  withoutReports,
} from '../decision/worlds.ts';
import { enough, runs } from '../support/properties.ts';
import { checkRequest } from './support/requests.ts';

const built = buildRouteTable(extraLines());
if (built.kind === 'error') throw new Error(built.message);
const { table: routes } = built;
const ZEROS = { take: (count: number) => new Uint8Array(count) };

function answered(world: RandomWorld, principal: RandomPrincipal, request: RandomRequest) {
  const outcomes: CheckOutcome[] = [];
  const gate = createCheckHandler({
    routes,
    resolver: {
      resolve: () => ({
        identity: randomIdentity(principal),
        snapshot: randomSnapshot(world, principal, request),
      }),
    },
    observer: { observe: (outcome) => outcomes.push(outcome) },
    trustedHops: 0,
    forwardCredential: false,
    now: () => Date.parse('2026-11-18T11:00:00Z'),
    random: ZEROS,
  });
  const { method, path, header, body, address } = request;
  const bytes = gate(
    checkRequest({
      method,
      path,
      headers: [
        ['authorization', 'Bearer any'],
        ...(header === undefined ? [] : [['x-tenant-id', header] as const]),
        ...(body === undefined ? [] : [['content-type', 'application/json'] as const]),
      ],
      ...(body === undefined ? {} : { body }),
      ...(address === undefined ? {} : { ip: address }),
    }),
  );
  if (bytes instanceof Promise) throw new Error('a warm check waits for nothing');
  return { bytes, outcome: outcomes[0] };
}

test('an answer has the same bytes with and without report-only policies, whatever they would have changed', () => {
  const seen = new Map<string | undefined, number>();
  fc.assert(
    fc.property(reportingWorldArbitrary, principalArbitrary, requestArbitrary, (world, principal, request) => {
      const reported = answered(world, principal, request);
      const plain = answered(withoutReports(world), principal, request);
      expect(reported.bytes.equals(plain.bytes)).toBe(true);
      expect(reported.outcome?.code).toBe(plain.outcome?.code);
      expect(reportedEffect(plain.outcome?.decision)).toBeUndefined();
      const effect = reportedEffect(reported.outcome?.decision);
      seen.set(effect, (seen.get(effect) ?? 0) + 1);
    }),
    { numRuns: runs(1000) },
  );
  for (const effect of ['allow', 'deny']) expect(seen.get(effect) ?? 0).toBeGreaterThanOrEqual(enough(5));
});
