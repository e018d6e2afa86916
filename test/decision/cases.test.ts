import { describe, expect, test } from 'vitest';
import { explainDecision } from '../../src/decision/explain.ts';
import { matchRoute } from '../../src/decision/routes.ts';
import { ERRORS } from '../../src/domain/errors.ts';
import { codeOf, compileWorld, decideCase, identityOf, inputOf, loadCases, snapshotOf } from '../support/world.ts';

const { defaults, world, cases } = loadCases();
const compiled = compileWorld(world);

describe('the decisions that the case file demands', () => {
  test.each(cases.map((one) => [one.name, one] as const))('%s', (_, one) => {
    const decision = decideCase(compiled, one, defaults);
    expect(codeOf(decision)).toBe(one.expect.code);
    expect(decision.kind === 'deny' ? ERRORS[decision.code].status : 200).toBe(one.expect.status);
  });

  test.each(cases.map((one) => [one.name, one] as const))('explained alike: %s', (_, one) => {
    const nowMs = Date.parse(one.time ?? defaults.time);
    const input = inputOf(one, defaults);
    const identity = identityOf(world, one.as, nowMs);
    const snapshot = snapshotOf(compiled, identity, input.tenant);
    const explanation = explainDecision(matchRoute(compiled.routes, input), input, identity, snapshot, nowMs);
    expect(explanation.code).toBe(one.expect.code);
    expect(explanation.status).toBe(one.expect.status);
    const outcomes = explanation.steps.map((step) => step.outcome);
    const ending = outcomes.indexOf(one.expect.code === 'allow' ? 'allowed' : 'denied');
    expect(outcomes[ending]).toBeDefined();
    expect(outcomes).toEqual(
      outcomes.map((_, at) => (at < ending ? 'passed' : at > ending ? 'not_evaluated' : outcomes[ending])),
    );
  });
});
