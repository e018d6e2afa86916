/** Which tenants' usage comes by events. */

import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { metersItself } from '../../src/server/limits.ts';

function told(env: Readonly<Record<string, string>>, tenant: string): boolean {
  const result = loadConfig({ env });
  if (result.kind !== 'config') throw new Error(JSON.stringify(result.errors));
  return metersItself(result.config)(tenant);
}

test.each([
  [{}, false, false],
  [{ POSTERN_USAGE_SOURCE: 'events' }, true, true],
  [{ POSTERN_USAGE_EVENTS_TENANTS: '["acme"]' }, true, false],
  [{ POSTERN_USAGE_SOURCE: 'events', POSTERN_USAGE_EVENTS_TENANTS: '["acme"]' }, true, true],
] as const)('%j: acme %s, globex %s', (env, acme, globex) => {
  expect([told(env, 'acme'), told(env, 'globex')]).toEqual([acme, globex]);
});

test.each([{ POSTERN_USAGE_SOURCE: 'both' }, { POSTERN_USAGE_EVENTS_TENANTS: '["No Tenant"]' }])(
  '%j stops the start',
  (env) => {
    expect(loadConfig({ env }).kind).toBe('invalid');
  },
);
