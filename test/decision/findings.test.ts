import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compilePolicies, compileTenant } from '../../src/decision/compile.ts';
import { differenceInSteps } from '../../src/decision/difference/difference.ts';
import { findingsInSteps, type RuleFinding } from '../../src/decision/difference/findings.ts';
import type { Snapshot } from '../../src/decision/model.ts';
import { type Proposal, withProposal } from '../../src/decision/proposed.ts';
import type { PolicyRecord, RoleRecord } from '../../src/domain/records.ts';
import { finish } from '../../src/domain/steps.ts';
import { builtinRoles } from '../support/builtin-roles.ts';
import { enough, runs } from '../support/properties.ts';
import { roleName } from '../support/world.ts';
import { policyNamed, ROLES, ruleChanges, START_MS, TABLE, TENANT, userWith } from './rule-changes.ts';

const MANAGEMENT = ['admin:keys', 'admin:tenants', 'usage:read'].map((permission) => ({ permission, self: false }));

function findingsOf(snapshot: Snapshot): readonly RuleFinding[] | undefined {
  return finish(findingsInSteps({ snapshot, routes: TABLE, management: MANAGEMENT })).findings;
}

/** Users with every pair of roles, so that no finding depends on the users that a tenant has. */
const EVERY_PAIR = ROLES.flatMap((one) => ROLES.map((other) => userWith([...new Set([one, other])], 1)));
const GROUPS = [...EVERY_PAIR, userWith([], 1)].map((principal) => ({ principal, count: 1 }));

describe('findings about rules', () => {
  test('are right for random rules: without the rule, no request of any user is decided differently', () => {
    const seen = { duplicate: 0, shadowed: 0, no_effect: 0 };
    fc.assert(
      fc.property(ruleChanges, ({ before }) => {
        for (const { kind, rule } of findingsOf(before) ?? []) {
          const roles = new Set(rule.kind === 'role' ? [roleName(rule.name)] : []);
          const policies = new Set(rule.kind === 'policy' ? [policyNamed(rule.name).name] : []);
          // A role that is removed takes its policies along. A role without permissions does not.
          const emptied: RoleRecord[] = [...roles].map((name) => ({ name, permissions: [], constraints: {} }));
          const proposal: Proposal = {
            roles: emptied,
            policies: [],
            globalPolicies: [],
            removed: { roles: new Set(), policies },
          };
          const after = withProposal(before, proposal);
          const input = { before, after, groups: GROUPS, routes: TABLE, management: MANAGEMENT, nowMs: START_MS };
          const { newlyAllowed, newlyDenied } = finish(differenceInSteps(input));
          expect([...newlyAllowed, ...newlyDenied]).toEqual([]);
          seen[kind]++;
        }
      }),
      { numRuns: runs(800) },
    );
    for (const count of [seen.shadowed, seen.no_effect]) expect(count).toBeGreaterThanOrEqual(enough(20));
  });

  test.each<{
    name: string;
    policies: readonly PolicyRecord[];
    roles?: readonly RoleRecord[];
    found: readonly object[];
  }>([
    {
      name: 'a policy that repeats another one in another order',
      policies: [
        policyNamed('b', { actions: ['rag:read', 'chat:read'] }),
        policyNamed('a', { actions: ['chat:read', 'rag:read'] }),
      ],
      found: [{ kind: 'duplicate', rule: { kind: 'policy', name: 'b' }, by: [{ kind: 'policy', name: 'a' }] }],
    },
    {
      name: 'an allow whose requests two denies deny together',
      policies: [
        policyNamed('gpt', { effect: 'allow', actions: ['embeddings:*'], resources: ['models/gpt-*'] }),
        policyNamed('weekdays', {
          actions: ['*'],
          conditions: { day_of_week: { in: ['Mon', 'Tue', 'Wed', 'Thu', 'Fri'] } },
        }),
        policyNamed('weekend', { actions: ['*'], conditions: { day_of_week: { in: ['Sat', 'Sun'] } } }),
      ],
      found: [
        {
          kind: 'shadowed',
          rule: { kind: 'policy', name: 'gpt' },
          by: [
            { kind: 'policy', name: 'weekdays' },
            { kind: 'policy', name: 'weekend' },
          ],
        },
      ],
    },
    {
      name: 'a deny within a wider one, and an allow within the grant of its role',
      policies: [
        policyNamed('narrow', { resources: ['models/llama-3'], conditions: { ip_address: { in: ['10.1.0.0/16'] } } }),
        policyNamed('wide', { resources: ['models/llama-*'], conditions: { ip_address: { in: ['10.0.0.0/8'] } } }),
        policyNamed('granted', {
          effect: 'allow',
          actions: ['agents:run'],
          resources: ['agents/a'],
          appliesTo: 'roles',
          attachedRoles: [roleName('developer')],
        }),
      ],
      found: [
        { kind: 'no_effect', rule: { kind: 'policy', name: 'granted' }, by: [{ kind: 'role', name: 'developer' }] },
        { kind: 'no_effect', rule: { kind: 'policy', name: 'narrow' }, by: [{ kind: 'policy', name: 'wide' }] },
      ],
    },
    {
      name: 'nothing if a narrower rule applies to further roles, or at further times',
      policies: [
        policyNamed('everyone', { resources: ['models/llama-3'] }),
        policyNamed('some', { resources: ['models/*'], appliesTo: 'roles', attachedRoles: [roleName('developer')] }),
        policyNamed('hours', { resources: ['models/*'], conditions: { time: { between: ['08:00', '18:00'] } } }),
      ],
      found: [],
    },
  ])('name $name', ({ policies, roles = [], found }) => {
    const tenant = compileTenant({ id: TENANT, status: 'active', settings: {}, quotas: {}, roles, policies });
    const snapshot = { own: tenant, effective: tenant, global: compilePolicies([]), builtinRoles };
    const findings = findingsOf(snapshot)?.toSorted((a, b) => (a.rule.name < b.rule.name ? -1 : 1));
    expect(findings).toEqual(found.map((one) => expect.objectContaining(one)));
  });

  test('are absent if the rules are too many to compare', () => {
    const resources = Array.from({ length: 60 }, (_, i) => `models/*${i}a*b${i}*c*d*`);
    const policies = [policyNamed('a', { resources }), policyNamed('b', { resources: ['models/x'] })];
    const tenant = compileTenant({ id: TENANT, status: 'active', settings: {}, quotas: {}, roles: [], policies });
    expect(findingsOf({ own: tenant, effective: tenant, global: compilePolicies([]), builtinRoles })).toBeUndefined();
  });
});
