import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decideTraced } from '../../src/decision/decide.ts';
import { differenceInSteps } from '../../src/decision/difference/difference.ts';
import type { Difference, ManagementAccess } from '../../src/decision/difference/model.ts';
import type { Snapshot } from '../../src/decision/model.ts';
import type { Trace } from '../../src/decision/permitted.ts';
import { matchRoute } from '../../src/decision/routes.ts';
import { finish } from '../../src/domain/steps.ts';
import { enough, runs } from '../support/properties.ts';
import { type ChangedRequest, type RuleChange, requests, ruleChanges, START_MS, TABLE } from './rule-changes.ts';

const MANAGEMENT: readonly ManagementAccess[] = [
  { permission: 'admin:keys', self: false },
  { permission: 'admin:keys', self: true },
  { permission: 'admin:tenants', self: false },
  { permission: 'usage:read', self: false },
];

function differenceOf({ before, after, groups }: RuleChange): Difference {
  return finish(differenceInSteps({ before, after, groups, routes: TABLE, management: MANAGEMENT, nowMs: START_MS }));
}

type Outcome = 'newlyAllowed' | 'newlyDenied' | 'same';

function outcomeOf(before: boolean, after: boolean): Outcome {
  if (before === after) return 'same';
  return after ? 'newlyAllowed' : 'newlyDenied';
}

/** Returns what the boxes say about a request. */
function boxed(
  difference: Difference,
  request: Parameters<Difference['newlyAllowed'][number]['contains']>[0],
): Outcome {
  const allowed = difference.newlyAllowed.some((box) => box.contains(request));
  const denied = difference.newlyDenied.some((box) => box.contains(request));
  expect(allowed && denied).toBe(false);
  return allowed ? 'newlyAllowed' : denied ? 'newlyDenied' : 'same';
}

/** Decides a request under both versions and compares the result with the boxes. @returns undefined if no route matches */
function check(change: RuleChange, difference: Difference, request: ChangedRequest): Outcome | undefined {
  const principal = change.groups[request.group]?.principal;
  const match = matchRoute(TABLE, request.input);
  if (principal === undefined || match.kind !== 'matched') return undefined;
  const trace: Trace = { grants: [] };
  const isAllowed = (snapshot: Snapshot) =>
    decideTraced(match, request.input, { kind: 'proved', principal }, snapshot, request.timeMs, trace).kind === 'allow';
  const outcome = outcomeOf(isAllowed(change.before), isAllowed(change.after));
  const told = boxed(difference, {
    group: request.group,
    permissions: match.route.permissions.map(({ text }) => text),
    management: false,
    self: false,
    resources: trace.query?.resources ?? [],
    clientAddress: request.input.clientAddress,
    timeMs: request.timeMs,
  });
  // An incomplete difference may leave changes out, and never names one that is none.
  if (difference.complete || told !== 'same') expect(told).toBe(outcome);
  return outcome;
}

describe('the difference of two versions of the rules', () => {
  test('contains a random request exactly if the decision about it changes, and each witness changes', () => {
    const seen = { newlyAllowed: 0, newlyDenied: 0, same: 0, complete: 0 };
    fc.assert(
      fc.property(ruleChanges, fc.array(requests, { minLength: 100, maxLength: 100 }), (change, asked) => {
        const difference = differenceOf(change);
        for (const request of asked) {
          const outcome = check(change, difference, request);
          if (outcome !== undefined) seen[outcome]++;
        }
        if (difference.complete) seen.complete++;
        expect(difference.unchanged).toBe(
          difference.complete && difference.newlyAllowed.length + difference.newlyDenied.length === 0,
        );
      }),
      { numRuns: runs(1000) },
    );
    // Changes that no request meets would prove little, and so would differences that give up.
    for (const count of [seen.newlyAllowed, seen.newlyDenied]) expect(count).toBeGreaterThanOrEqual(enough(1000));
    expect(seen.complete).toBeGreaterThanOrEqual(enough(900));
  });
});
