/** Every decision case through a real Envoy, configured as each mesh makes it of the manifests in its guide. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CaseStand, startCaseStand } from '../support/case-stand.ts';
import type { Edge } from '../support/envoy.ts';
import { type DecisionCase, loadCases } from '../support/world.ts';
import {
  outcomeOf,
  PATCHED,
  type Patched,
  PROFILES,
  type Profile,
  startPatched,
  startProfile,
} from './support/profiles.ts';
import { tableOf } from './support/tables.ts';

const { cases } = loadCases();
const edges = new Map<Profile | Patched, Edge>();
let stand: CaseStand;

beforeAll(async () => {
  stand = await startCaseStand();
  const started = await Promise.all(
    PROFILES.map(async (profile) => [profile, await startProfile(profile, stand)] as const),
  );
  for (const [profile, edge] of started) edges.set(profile, edge);
  for (const profile of PATCHED) edges.set(profile, await startPatched(profile, stand));
});

afterAll(async () => {
  await Promise.all([...edges.values()].map((edge) => edge.stop()));
  await stand?.close();
});

/** The rows of the page: what differs from the decision demanded, by the case's name and the profile. */
const stated = new Map(tableOf('profiles', 'Decision cases').map((row) => [row['case'], row]));

async function outcome(profile: Profile | Patched, one: DecisionCase): Promise<string> {
  const edge = edges.get(profile) ?? expect.fail(`${profile} does not run`);
  return outcomeOf(await stand.send(edge.url, one));
}

test('the page names no case that does not exist', () => {
  const names = new Set(cases.map(({ name }) => name));
  expect([...stated.keys()].filter((name) => name === undefined || !names.has(name))).toEqual([]);
});

describe.each(PROFILES)('%s', (profile) => {
  test.each(cases.map((one) => [one.name, one] as const))('%s', async (name, one) => {
    const demanded = `${one.expect.status} ${one.expect.code}`;
    expect(await outcome(profile, one)).toBe(stated.get(name)?.[profile] ?? demanded);
  });
});

describe.each(PATCHED)('the full profile: %s', (profile) => {
  test.each(cases.map((one) => [one.name, one] as const))('%s', async (name, one) => {
    const demanded = `${one.expect.status} ${one.expect.code}`;
    expect(await outcome(profile, one)).toBe(stated.get(name)?.['full'] ?? demanded);
  });
});
