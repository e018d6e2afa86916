import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Harness, outcome, type Person, startHarness } from './harness.ts';

let h: Harness;
let boss: Person;
beforeAll(async () => {
  h = await startHarness({
    settings: { POSTERN_ROUTES: '[{"method":"POST","path":"/v1/shop/orders","permission":"shop:order"}]' },
  });
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'acme', name: 'acme' } });
  boss = await h.person('acme', ['tenant-admin']);
});
afterAll(async () => {
  await h.close();
});

const PLATFORM = ['images', 'audio', 'files', 'batches', 'moderations', 'rerank'];

describe('tenant-admin', () => {
  test('holds every permission of a resource that the route table names, configured routes included, and says so', async () => {
    const me = await h.api('GET', '/v1/auth/me', { as: boss.token });
    const role = await h.api('GET', '/v1/iam/roles/tenant-admin', { as: boss.token });
    for (const resource of [...PLATFORM, 'chat', 'embeddings', 'models', 'rag', 'agents', 'finetuning', 'shop']) {
      expect(me.json['permissions']).toContain(`${resource}:*`);
      expect(role.json['permissions']).toContain(`${resource}:*`);
    }
  });

  test('may use such a permission, and give it to others', async () => {
    for (const permission of ['shop:order', 'shop:*', ...PLATFORM.map((resource) => `${resource}:write`)]) {
      const name = permission.replace(/[^a-z]/g, '-').replace(/-+$/, '');
      const made = await h.api('POST', '/v1/iam/roles', {
        as: boss.token,
        body: { name: `may-${name}`, permissions: [permission] },
      });
      expect([permission, outcome(made)]).toEqual([permission, '201']);
    }
    const question = { subject: boss.id, method: 'POST', path: '/v1/shop/orders' };
    const explained = await h.api('POST', '/v1/iam/explain', { as: boss.token, body: question });
    expect(explained.json).toMatchObject({ decision: 'allow' });
  });

  test('may not give what no route names, and the other built-in roles hold nothing of the new resources', async () => {
    for (const permissions of [['*'], ['else:*'], ['*:order']]) {
      const made = await h.api('POST', '/v1/iam/roles', { as: boss.token, body: { name: 'more', permissions } });
      expect(outcome(made)).toBe('403 escalation');
    }
    for (const role of ['developer', 'ml-engineer', 'auditor']) {
      const person = await h.person('acme', [role]);
      const question = { method: 'GET', path: '/v1/files/f' };
      const explained = await h.api('POST', '/v1/iam/explain', {
        as: person.token,
        body: { ...question, subject: person.id },
      });
      expect([role, explained.json['code']]).toEqual([role, 'insufficient_permission']);
    }
  });
});
