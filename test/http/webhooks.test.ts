/** /v1/iam/webhooks: events of the audit log are sent at least once, signed as Standard Webhooks 1.0 asks for. */

import { createHmac, randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { makeId, parseTenantId, type WebhookId } from '../../src/domain/ids.ts';
import { tidyUp } from '../../src/iam/auth/upkeep.ts';
import { lockTenants } from '../../src/iam/setup/queries.ts';
import { advanceKeyEnds, holdKeyEnds } from '../../src/iam/webhooks/announcement-queries.ts';
import { announceAlerts, announceStates } from '../../src/iam/webhooks/announcements.ts';
import { attemptDelivery, type SendParts, signedHeaders } from '../../src/iam/webhooks/attempt.ts';
import { patternProblem, selectedEvent } from '../../src/iam/webhooks/catalog.ts';
import {
  type ClaimedDelivery,
  claimDelivery,
  expireDeliveries,
  listDeliveries,
  releaseDelivery,
  saveAttempt,
} from '../../src/iam/webhooks/delivery-queries.ts';
import { fillOutbox } from '../../src/iam/webhooks/outbox.ts';
import { holdWebhook } from '../../src/iam/webhooks/read.ts';
import { makeSecret, resealWebhookSecrets, sealSecret } from '../../src/iam/webhooks/secret.ts';
import { startSender } from '../../src/iam/webhooks/sender.ts';
import { macUnder } from '../../src/identity/seal.ts';
import { insertAudit } from '../../src/store/audit-rows.ts';
import { sealBatch } from '../../src/store/audit-seal.ts';
import type { Database } from '../../src/store/database.ts';
import { transaction } from '../../src/store/transaction.ts';
import { entry } from '../audit/support.ts';
import { PATIENT } from '../support/database.ts';
import { type Received, type Receiver, startReceiver } from '../support/receiver.ts';
import { SECRET_KEY } from '../support/wiring.ts';
import { type Harness, type Json, outcome, type Person, type Reply, startHarness, text, unique } from './harness.ts';

const WEBHOOKS = '/v1/iam/webhooks';
const HOUR_MS = 3_600_000;
const mac = macUnder(SECRET_KEY, 'audit-chain');

let h: Harness;
let receiver: Receiver;
/** Another host. */
let elsewhere: Receiver;
let outside: Database;
beforeAll(async () => {
  [receiver, elsewhere] = await Promise.all([startReceiver(), startReceiver()]);
  h = await startHarness({
    settings: {
      POSTERN_WEBHOOKS_ALLOWED_HOSTS: JSON.stringify([receiver.host, elsewhere.host, 'hooks.internal.example']),
    },
  });
  outside = h.db.reopen({ poolMax: 1, ...PATIENT });
});
afterAll(async () => {
  await outside?.close();
  await h?.close();
  await receiver?.close();
  await elsewhere?.close();
});
// No test sends what another has left.
afterEach(async () => {
  await run('delete from webhooks');
  await run('delete from webhook_deliveries');
});

/** Outside the bounds of the server: a busy machine may take longer for the rows of a test. */
const run = (sql: string, ...values: unknown[]) => outside.query({ text: sql, values });

interface Tenant {
  readonly id: string;
  readonly boss: Person;
}

async function newTenant(): Promise<Tenant> {
  const id = unique('acme');
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  return { id, boss: await h.person(id, ['tenant-admin']) };
}

interface Hook {
  readonly id: string;
  readonly path: string;
  readonly secret: string;
}

let count = 0;

/** Creates a webhook with a path of its own at the receiver. */
async function hook(of: Tenant, events: readonly string[], path = `/${++count}`): Promise<Hook> {
  const body = { url: `http://${receiver.host}${path}`, events };
  const { json } = await h.api('POST', WEBHOOKS, { as: of.boss.token, body });
  return { id: text(json, 'id'), path, secret: text(json, 'secret') };
}

const on = (of: Tenant, { id }: Pick<Hook, 'id'>, method: string, rest = '', body?: object): Promise<Reply> =>
  h.api(method, `${WEBHOOKS}/${id}${rest}`, { as: of.boss.token, ...(body === undefined ? {} : { body }) });

async function deliveries(of: Tenant, one: Hook): Promise<readonly Json[]> {
  const { json } = await on(of, one, 'GET', '/deliveries');
  return json['data'] as readonly Json[];
}

/** Seals the audit log, and turns its rows into deliveries. */
async function publish(): Promise<number> {
  while ((await sealBatch(h.db, mac)).more);
  return fillOutbox({ db: h.db, random: randomBytes });
}

/** Sends what is due, as a process does. @param changes to the sender's parts */
async function sendDue(changes: Partial<SendParts> = {}): Promise<void> {
  const faults: unknown[] = [];
  const events = { onRun: () => undefined, onFault: (error: unknown) => faults.push(error) };
  const sender = startSender({ ...h.webhooks, ...changes }, events, () => undefined, HOUR_MS);
  await sender.flush();
  await sender.stop();
  expect(faults).toEqual([]);
}

const makeDue = () => run(`update webhook_deliveries set next_attempt_at = now() where state = 'waiting'`);

const requestsTo = ({ path }: Hook): readonly Received[] => receiver.received.filter((each) => each.path === path);

/** The events that a webhook has received, with valid signatures. */
function eventsAt(one: Hook): readonly Json[] {
  return requestsTo(one).map(({ headers, body }) => {
    const [id, timestamp] = [String(headers['webhook-id']), Number(headers['webhook-timestamp'])];
    expect(signedHeaders([one.secret], { id, timestamp, body })).toMatchObject({
      'webhook-signature': headers['webhook-signature'],
    });
    return JSON.parse(body);
  });
}

const typesAt = (one: Hook) => eventsAt(one).map((event) => event['type']);

async function newKey(of: Tenant, more: object = {}): Promise<string> {
  const body = { description: 'k', scopes: ['chat:read'], expires_in_days: 30, ...more };
  return text((await h.api('POST', '/v1/iam/api-keys', { as: of.boss.token, body })).json, 'id');
}

async function revokedKey(of: Tenant): Promise<string> {
  const id = await newKey(of);
  await h.api('DELETE', `/v1/iam/api-keys/${id}`, { as: of.boss.token });
  return id;
}

describe('a signature', () => {
  test('is that of the published test vector', () => {
    const vector = {
      id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      timestamp: 1_614_265_330,
      body: '{"test": 2432232314}',
    };
    expect(signedHeaders(['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'], vector)).toEqual({
      'webhook-id': vector.id,
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    });
  });

  test('of the former secret is sent beside that of the new one for a day', async () => {
    const acme = await newTenant();
    const one = await hook(acme, ['key.*']);
    const rotated = await on(acme, one, 'POST', '/rotate');
    const secret = text(rotated.json, 'secret');
    expect(secret).not.toBe(one.secret);
    expect(Date.parse(text(rotated.json, 'previous_until')) - Date.now()).toBeGreaterThan(23 * HOUR_MS);
    await on(acme, one, 'POST', '/test');
    await run(`update webhooks set previous_until = now() - interval '1 second' where id = $1`, one.id);
    await on(acme, one, 'POST', '/test');
    const signatures = requestsTo(one).map(({ headers, body }) => {
      const content = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
      const sign = (of: string): string =>
        `v1,${createHmac('sha256', Buffer.from(of.slice(6), 'base64'))
          .update(content)
          .digest('base64')}`;
      return [headers['webhook-signature'], sign(secret), sign(one.secret)];
    });
    expect(signatures[0]?.[0]).toBe(`${signatures[0]?.[1]} ${signatures[0]?.[2]}`);
    expect(signatures[1]?.[0]).toBe(signatures[1]?.[1]);
    expect((await on(acme, one, 'GET')).json['previous_until']).toBeNull();
  });

  test('is made by a secret that is sealed again when the installation changes its key', async () => {
    const acme = await newTenant();
    const one = await hook(acme, ['key.*']);
    const next = 'another secret key of tests that is long enough';
    expect(await transaction(h.db, (trx) => resealWebhookSecrets(trx, SECRET_KEY, next))).toBe(1);
    await revokedKey(acme);
    await publish();
    await sendDue({ keys: { secretKey: SECRET_KEY, otherSecretKey: next } });
    expect(typesAt(one)).toEqual(['key.revoked']);
  });
});

describe('a webhook', () => {
  test('shows its secret when it is created, and never again', async () => {
    const acme = await newTenant();
    const body = { url: `http://${receiver.host}/once`, events: ['key.*', 'key.*'], description: 'Alerts' };
    const made = await h.api('POST', WEBHOOKS, { as: acme.boss.token, body });
    const { secret, ...shown } = made.json;
    expect([outcome(made), secret]).toEqual(['201', expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/)]);
    expect(shown).toMatchObject({ events: ['key.*'], enabled: true, disabled_reason: null, dropped: 0 });
    const listed = await h.api('GET', WEBHOOKS, { as: acme.boss.token });
    expect(listed.json['data']).toEqual([shown]);
    const audited = (await h.audit('webhook.create')).at(-1);
    expect(audited?.['after']).toEqual(shown);
    expect(JSON.stringify(await run('select * from webhooks'))).not.toContain(String(secret));
  });

  test('is one of at most 20 of a tenant, with a URL of its own', async () => {
    const acme = await newTenant();
    for (let n = 0; n < 20; n++) await hook(acme, ['key.*']);
    const create = (url: string, as = acme) =>
      h.api('POST', WEBHOOKS, { as: as.boss.token, body: { url, events: ['key.*'] } });
    expect(outcome(await create(`http://${receiver.host}/more`))).toBe('409 quota_exceeded');
    const globex = await newTenant();
    const { path } = await hook(globex, ['key.*']);
    expect(outcome(await create(`http://${receiver.host}${path}`, globex))).toBe('409 already_exists');
  });

  test('has events of the catalog, and an address on the public internet or of an allowed host', async () => {
    const { boss } = await newTenant();
    const errors = async (url: string, ...events: string[]): Promise<unknown> =>
      (
        (await h.api('POST', WEBHOOKS, { as: boss.token, body: { url, events } })).json['errors'] as Json[] | undefined
      )?.map(({ path }) => path) ?? 'none';
    const good = 'https://hooks.acme.example/x';
    expect(await errors(good, 'key.*', 'audit.role.update')).toBe('none');
    for (const event of ['keys.*', 'key.revoke', 'budget.thresholds'])
      expect(await errors(good, event)).toEqual(['/events/0']);
    for (const url of [
      'https://10.0.0.7/x',
      'https://169.254.169.254/latest',
      'https://[::1]/x',
      'https://localhost/x',
      'http://hooks.acme.example/x',
      'https://user:pass@hooks.acme.example/',
      'file:///etc/passwd',
    ])
      expect([url, await errors(url, 'key.*')]).toEqual([url, ['/url']]);
  });

  test('that selects rows of the audit log needs audit:read of each caller that writes it', async () => {
    const acme = await newTenant();
    const body = { name: 'hooks', permissions: ['admin:webhooks'] };
    await h.api('POST', '/v1/iam/roles', { as: acme.boss.token, body });
    const clerk = await h.person(acme.id, ['hooks']);
    const url = `http://${receiver.host}/clerk`;
    const create = (...events: string[]) => h.api('POST', WEBHOOKS, { as: clerk.token, body: { url, events } });
    for (const pattern of ['*', 'audit.*', 'audit.role.update'])
      expect(outcome(await create(pattern))).toBe('403 insufficient_permission');
    expect(outcome(await create('key.*', 'audit.chain_broken'))).toBe('201');
    // Nor may it send the rows that another caller has selected to another address.
    const one = await hook(acme, ['*']);
    const moved = await h.api('PATCH', `${WEBHOOKS}/${one.id}`, { as: clerk.token, body: { url: `${url}/stolen` } });
    expect(outcome(moved)).toBe('403 insufficient_permission');
  });

  test('with deliveries of such rows gets another address from callers with audit:read only, also if it selects them no longer', async () => {
    const acme = await newTenant();
    const role = { name: 'hooks', permissions: ['admin:webhooks'] };
    await h.api('POST', '/v1/iam/roles', { as: acme.boss.token, body: role });
    const clerk = { ...acme, boss: await h.person(acme.id, ['hooks']) };
    const [one, named] = [await hook(acme, ['audit.*']), await hook(acme, ['key.*'])];
    await revokedKey(acme);
    await publish();
    await sendDue();
    expect(outcome(await on(acme, one, 'PATCH', '', { events: ['key.*'] }))).toBe('200');
    const move = async (of: Tenant, moved: Hook) =>
      outcome(await on(of, moved, 'PATCH', '', { url: `http://${receiver.host}${moved.path}/other` }));
    expect(await move(clerk, one)).toBe('403 insufficient_permission');
    expect(outcome(await on(clerk, one, 'PATCH', '', { description: 'of the clerk' }))).toBe('200');
    expect(await move(clerk, named)).toBe('200');
    expect(await move(acme, one)).toBe('200');
  });

  test('belongs to its tenant: it sends events after the user that created it was deleted', async () => {
    const acme = await newTenant();
    const creator = { ...acme, boss: await h.person(acme.id, ['tenant-admin']) };
    const one = await hook(creator, ['key.*']);
    const gone = await h.api('DELETE', `/v1/iam/users/${creator.boss.id}`, { as: acme.boss.token });
    expect(outcome(gone)).toBe('204');
    await revokedKey(acme);
    await publish();
    await sendDue();
    expect(typesAt(one)).toEqual(['key.revoked']);
  });
});

describe('many deliveries', () => {
  /** Deliveries that a webhook has received, and one before them that failed. */
  async function many(one: Hook): Promise<void> {
    await run(
      `insert into webhook_deliveries (id, webhook_id, type, body, state, next_attempt_at)
       select 'dlv_' || $1 || lpad(n::text, 6, '0'), $1, 'key.revoked', '{}', case n when 1 then 'failed' else 'delivered' end, null
       from generate_series(1, 3000) n`,
      one.id,
    );
  }

  const count = async ({ id }: Hook) =>
    (await run('select count(*)::int as n from webhook_deliveries where webhook_id = $1', id))[0]?.['n'];

  test('of a webhook, and of a tenant, are removed by upkeep after the deletion', async () => {
    const [acme, globex] = [await newTenant(), await newTenant()];
    const [one, kept, other] = [await hook(acme, ['*']), await hook(acme, ['*']), await hook(globex, ['*'])];
    for (const each of [one, kept, other]) await many(each);
    expect(outcome(await on(acme, one, 'DELETE'))).toBe('204');
    await h.api('DELETE', `/v1/iam/users/${globex.boss.id}`, { as: h.root.token });
    expect(outcome(await h.api('DELETE', `/v1/iam/tenants/${globex.id}`, { as: h.root.token }))).toBe('204');
    for (const each of [one, kept, other]) expect(await count(each)).toBe(3000);
    await tidyUp(h.db);
    expect([await count(one), await count(kept), await count(other)]).toEqual([0, 3000, 0]);
  });

  test('do not have to be read to find those of one state', async () => {
    const acme = await newTenant();
    const one = await hook(acme, ['key.*']);
    await many(one);
    await transaction(h.db, async (trx) => {
      const read = async (): Promise<number> => {
        const counted = `select (seq_tup_read + idx_tup_fetch)::int as n from pg_stat_xact_user_tables where relname = 'webhook_deliveries'`;
        return (await trx.raw<{ rows: { n: number }[] }>(counted)).rows[0]?.n ?? expect.fail();
      };
      const before = await read();
      const page = { after: undefined, take: 51 };
      expect(await listDeliveries(trx, one.id as WebhookId, { state: 'failed' }, page)).toHaveLength(1);
      expect((await read()) - before).toBe(1);
    });
  });
});

describe('an event', () => {
  test('is sent once to each webhook of its tenant that selects it, and to no other', async () => {
    const [acme, globex] = [await newTenant(), await newTenant()];
    const [named, every, other, off, foreign] = [
      await hook(acme, ['key.revoked']),
      await hook(acme, ['*']),
      await hook(acme, ['budget.*']),
      await hook(acme, ['key.*']),
      await hook(globex, ['*']),
    ];
    await on(acme, off, 'PATCH', '', { enabled: false });
    const key = await revokedKey(acme);
    await Promise.all([publish(), publish()]);
    await Promise.all([sendDue(), sendDue()]);
    const [event] = eventsAt(named);
    expect(event).toMatchObject({
      type: 'key.revoked',
      timestamp: expect.any(String),
      data: { tenant_id: acme.id, action: 'api_key.revoke', actor: { id: acme.boss.id }, target: { id: key } },
    });
    expect(typesAt(named)).toEqual(['key.revoked']);
    // Two senders may send two events of a webhook at the same time.
    const sent = typesAt(every).filter((type) => String(type).includes('key'));
    expect(sent.toSorted()).toEqual(['audit.api_key.create', 'key.revoked']);
    expect([requestsTo(other), requestsTo(off)]).toEqual([[], []]);
    expect(eventsAt(foreign).filter(({ data }) => (data as Json)['tenant_id'] !== globex.id)).toEqual([]);
    expect(await deliveries(acme, named)).toMatchObject([{ type: 'key.revoked', state: 'delivered', status: 204 }]);
  });

  test('announces each key of a request that revokes several', async () => {
    const acme = await newTenant();
    const one = await hook(acme, ['key.revoked']);
    const ids = [await newKey(acme), await newKey(acme), 'key_unknown'];
    await h.api('POST', '/v1/iam/api-keys/revoke', { as: acme.boss.token, body: { ids } });
    await publish();
    await sendDue();
    const targets = eventsAt(one).map(({ data }) => ((data as Json)['target'] as Json)['id']);
    expect(targets).toHaveLength(2);
    expect(new Set(targets)).toEqual(new Set(ids.slice(0, 2)));
  });

  test('reaches a receiver while a setup of its tenant, or of another tenant, is being applied', async () => {
    const acme = await newTenant();
    const one = await hook(acme, ['key.revoked']);
    await revokedKey(acme);
    await transaction(h.db, async (trx) => {
      await lockTenants(trx, [parseTenantId(acme.id) ?? expect.fail()]);
      await publish();
      await sendDue();
      expect(typesAt(one)).toEqual(['key.revoked']);
    });
  });

  test('reaches a receiver while the webhook is being changed', async () => {
    const acme = await newTenant();
    const one = await hook(acme, ['key.revoked']);
    await revokedKey(acme);
    await transaction(h.db, async (trx) => {
      await holdWebhook(trx, parseTenantId(acme.id) ?? expect.fail(), one.id);
      await publish();
      await sendDue();
      expect(typesAt(one)).toEqual(['key.revoked']);
    });
  });

  test('of a change that was rolled back is never sent, and one before the webhook existed neither', async () => {
    const acme = await newTenant();
    await revokedKey(acme);
    const one = await hook(acme, ['key.*']);
    const row = entry({ tenantId: acme.id, action: 'api_key.revoke', targetId: 'rolled back' });
    const failed = transaction(h.db, async (trx) => {
      await insertAudit(trx, row);
      throw new Error('rolled back');
    });
    await expect(failed).rejects.toThrow('rolled back');
    await transaction(h.db, (trx) => insertAudit(trx, { ...row, targetId: 'committed' }));
    await publish();
    await sendDue();
    expect(eventsAt(one).map(({ data }) => ((data as Json)['target'] as Json)['id'])).toEqual(['committed']);
  });

  test('with large states is sent without them', async () => {
    const acme = await newTenant();
    const one = await hook(acme, ['audit.role.update']);
    const after = { text: 'x'.repeat(70_000) };
    await transaction(h.db, (trx) => insertAudit(trx, entry({ tenantId: acme.id, after })));
    await publish();
    await sendDue();
    const [event] = eventsAt(one);
    expect(event?.['data']).toMatchObject({ truncated: true, action: 'role.update' });
    expect(event?.['data']).not.toHaveProperty('after');
  });

  test('of the whole platform goes to the first tenant only', async () => {
    const acme = await newTenant();
    const [first, other] = [
      await hook({ id: 'default', boss: h.root }, ['*']),
      await hook(acme, ['*', 'audit.chain_broken']),
    ];
    await transaction(h.db, async (trx) => {
      await insertAudit(trx, entry({ tenantId: undefined, action: 'secret_key.rotate' }));
      await insertAudit(trx, entry({ tenantId: undefined, action: 'audit.chain_broken', result: 'failure' }));
    });
    await publish();
    await sendDue();
    const types = typesAt(first);
    expect([types.includes('audit.chain_broken'), types.includes('audit.secret_key.rotate')]).toEqual([true, false]);
    expect(typesAt(other).filter((type) => type === 'audit.chain_broken')).toEqual([]);
  });

  test('waits while its tenant is suspended, and fails after a day', async () => {
    const acme = await newTenant();
    const one = await hook(acme, ['key.*']);
    await revokedKey(acme);
    await publish();
    const tenant = (verb: string) => h.api('POST', `/v1/iam/tenants/${acme.id}/${verb}`, { as: h.root.token });
    await tenant('suspend');
    await sendDue();
    expect(requestsTo(one)).toEqual([]);
    await tenant('activate');
    await sendDue();
    expect(typesAt(one)).toEqual(['key.revoked']);
    await on(acme, one, 'PATCH', '', { enabled: false });
    await run(`update webhook_deliveries set state = 'waiting', next_attempt_at = now() - interval '1 day',
      waiting_since = now() - interval '26 hours' where webhook_id = '${one.id}'`);
    expect(await expireDeliveries(h.db.knex, 10)).toBe(1);
    expect(await deliveries(acme, one)).toMatchObject([{ state: 'failed', next_attempt_at: null }]);
  });

  test('that no process sent for more than a day, because none ran, is sent', async () => {
    const acme = await newTenant();
    const one = await hook(acme, ['key.*']);
    await revokedKey(acme);
    await publish();
    await run(`update webhook_deliveries set next_attempt_at = now() - interval '26 hours', waiting_since = now() - interval '26 hours'
      where webhook_id = '${one.id}'`);
    expect(await expireDeliveries(h.db.knex, 10)).toBe(0);
    await sendDue();
    expect(typesAt(one)).toEqual(['key.revoked']);
  });

  test('is left out and counted while 10,000 deliveries wait', async () => {
    const acme = await newTenant();
    const one = await hook(acme, ['key.*']);
    await run(
      `insert into webhook_deliveries (id, webhook_id, type, body) select 'dlv_' || n, $1, 'key.revoked', '{}' from generate_series(1, 9999) n`,
      one.id,
    );
    for (let n = 0; n < 3; n++) await revokedKey(acme);
    expect(await publish()).toBe(1);
    expect((await on(acme, one, 'GET')).json).toMatchObject({ dropped: 2 });
  });
});

describe('a receiver', () => {
  test('that fails gets the same delivery again, with growing pauses, for 24 hours', async () => {
    const acme = await newTenant();
    const one = await hook(acme, ['key.*']);
    receiver.answer(one.path, (response) => void response.writeHead(500).end('no room \u0000 here'.repeat(100)));
    await revokedKey(acme);
    await publish();
    const pauses: number[] = [];
    for (let attempt = 1; attempt <= 8; attempt++) {
      await makeDue();
      await sendDue();
      const [row] = await run(
        'select extract(epoch from next_attempt_at - attempted_at)::float8 as s from webhook_deliveries',
      );
      pauses.push(Number(row?.['s']));
    }
    for (const [n, seconds] of [5, 300, 1800, 7200, 18_000, 36_000, 23_095].entries())
      expect(Math.abs((pauses[n] ?? 0) / seconds - 1)).toBeLessThan(0.15);
    expect(new Set(requestsTo(one).map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    const [failed] = await deliveries(acme, one);
    expect(failed).toMatchObject({ state: 'failed', attempts: 8, status: 500, next_attempt_at: null });
    expect(text(failed ?? {}, 'answer')).toHaveLength(1024);
    // A replay begins again, under the same id.
    receiver.answer(one.path, (response) => void response.writeHead(200).end());
    const replayed = await on(acme, one, 'POST', `/deliveries/${text(failed ?? {}, 'id')}/replay`);
    expect(replayed.json).toMatchObject({ state: 'waiting', attempts: 0 });
    await sendDue();
    expect(await deliveries(acme, one)).toMatchObject([{ state: 'delivered', attempts: 1, status: 200 }]);
    expect(new Set(requestsTo(one).map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  });

  test('that hangs delays no other webhook of another tenant', async () => {
    const [acme, globex] = [await newTenant(), await newTenant()];
    const hanging = await hook(acme, ['key.*']);
    const released = Promise.withResolvers<void>();
    receiver.answer(hanging.path, (response) => void released.promise.then(() => response.writeHead(204).end()));
    for (let n = 0; n < 3; n++) await revokedKey(acme);
    await publish();
    const sender = startSender(
      h.webhooks,
      { onRun: () => undefined, onFault: () => undefined },
      () => undefined,
      HOUR_MS,
    );
    const stuck = sender.flush();
    await receiver.until(hanging.path, 1);
    const quick = await hook(globex, ['key.*']);
    await revokedKey(globex);
    await publish();
    const both = sender.flush();
    await receiver.until(quick.path, 1);
    expect(requestsTo(hanging)).toHaveLength(1);
    released.resolve();
    await Promise.all([stuck, both]);
    await sender.stop();
    expect(requestsTo(hanging)).toHaveLength(3);
  });

  test('whose host hangs, with webhooks of 129 tenants, delays no webhook of another host', async () => {
    const hooks = Array.from({ length: 129 }, (_, n) => {
      const id = makeId('whk', n, randomBytes(10));
      return { id, tenant: unique('many'), sealed: sealSecret(h.webhooks.keys, id, makeSecret(randomBytes)) };
    });
    await run(
      `insert into tenants (id, name) select t, t from unnest($1::text[]) t`,
      hooks.map(({ tenant }) => tenant),
    );
    await run(
      `insert into webhooks (id, tenant_id, url, events, secret_sealed) select i, t, $4, '{*}', s from unnest($1::text[], $2::text[], $3::bytea[]) x(i, t, s)`,
      ...[hooks.map(({ id }) => id), hooks.map(({ tenant }) => tenant), hooks.map(({ sealed }) => sealed)],
      `http://${receiver.host}/busy`,
    );
    await run(
      `insert into webhook_deliveries (id, webhook_id, type, body) select 'dlv_' || id, id, 'key.revoked', '{}' from webhooks`,
    );
    const released = Promise.withResolvers<void>();
    receiver.answer('/busy', (response) => void released.promise.then(() => response.writeHead(204).end()));
    const globex = await newTenant();
    const url = `http://${elsewhere.host}/quick`;
    await h.api('POST', WEBHOOKS, { as: globex.boss.token, body: { url, events: ['key.*'] } });
    await revokedKey(globex);
    await publish();
    const sent = sendDue();
    await elsewhere.until('/quick', 1);
    expect(receiver.received.filter(({ path }) => path === '/busy').length).toBeLessThanOrEqual(8);
    released.resolve();
    await sent;
  });

  test('that answers nothing in time, or redirects, gets the delivery later, and no other server gets it', async () => {
    const [acme, other] = [await newTenant(), await newTenant()];
    const silent = await hook(acme, ['key.*']);
    receiver.answer(silent.path, () => undefined);
    await revokedKey(acme);
    await publish();
    await sendDue({ fetch: { ...h.webhooks.fetch, timeoutMs: 100 } });
    expect(await deliveries(acme, silent)).toMatchObject([
      { state: 'waiting', attempts: 1, error: expect.stringMatching(/in time/) },
    ]);
    const [moved, target] = [await hook(other, ['key.*']), await hook(other, ['budget.*'])];
    receiver.answer(moved.path, (response) => void response.writeHead(302, { location: target.path }).end());
    await revokedKey(other);
    await publish();
    await sendDue();
    expect(await deliveries(other, moved)).toMatchObject([
      { state: 'waiting', attempts: 1, error: expect.stringMatching(/redirects/) },
    ]);
    expect(requestsTo(target)).toEqual([]);
  });

  test('that answers 410 gets nothing more: the webhook is disabled, with an audit row', async () => {
    const acme = await newTenant();
    const one = await hook(acme, ['key.*']);
    receiver.answer(one.path, (response) => void response.writeHead(410).end());
    for (let n = 0; n < 2; n++) await revokedKey(acme);
    await publish();
    await sendDue();
    await sendDue();
    expect(requestsTo(one)).toHaveLength(1);
    expect((await on(acme, one, 'GET')).json).toMatchObject({
      enabled: false,
      disabled_reason: expect.stringMatching(/410/),
    });
    expect((await h.audit('webhook.disable')).at(-1)).toMatchObject({
      actor_type: 'system',
      tenant_id: acme.id,
      target_id: one.id,
    });
    expect((await on(acme, one, 'PATCH', '', { enabled: true })).json).toMatchObject({
      enabled: true,
      disabled_reason: null,
    });
  });

  test.each([
    [200, 'breaks off'],
    [200, 'does not end'],
    [410, 'breaks off'],
    [410, 'does not end'],
  ])('that answers %i has answered, also if the body %s', async (status, body) => {
    const acme = await newTenant();
    const one = await hook(acme, ['key.*']);
    receiver.answer(one.path, (response) => {
      response.writeHead(status, { 'content-length': 100 }).write('the beginning');
      if (body === 'breaks off') setTimeout(() => response.destroy(), 20);
    });
    await revokedKey(acme);
    await publish();
    await sendDue({ fetch: { ...h.webhooks.fetch, timeoutMs: 2000 } });
    const state = status === 200 ? 'delivered' : 'failed';
    expect(await deliveries(acme, one)).toMatchObject([{ state, status, answer: 'the beginning' }]);
    expect((await on(acme, one, 'GET')).json).toMatchObject({ enabled: status === 200 });
  });

  test('whose name resolves to a private address gets nothing, also if it was public before', async () => {
    const acme = await newTenant();
    const one = await hook(acme, ['key.*']);
    await run(`update webhooks set url = 'https://rebinding.example/x' where id = $1`, one.id);
    await revokedKey(acme);
    await publish();
    const resolve = async (): Promise<readonly string[]> => ['203.0.114.7', '127.0.0.1'];
    await sendDue({ fetch: { ...h.webhooks.fetch, resolve } });
    const [refused] = await deliveries(acme, one);
    expect(refused).toMatchObject({ state: 'waiting', error: expect.stringMatching(/webhooks\.allowed-hosts/) });
  });

  test('gets a delivery again if the process of its attempt died, after the claim has ended', async () => {
    const acme = await newTenant();
    const one = await hook(acme, ['key.*']);
    await revokedKey(acme);
    await publish();
    await run(
      `update webhook_deliveries set attempts = 1, attempted_at = now(), next_attempt_at = now() + interval '30 seconds'`,
    );
    await sendDue();
    expect(requestsTo(one)).toEqual([]);
    await makeDue();
    await sendDue();
    expect(await deliveries(acme, one)).toMatchObject([{ state: 'delivered', attempts: 2 }]);
  });

  test('gets a delivery from another process if the one of its attempt was stopped, whose late result then changes nothing', async () => {
    const acme = await newTenant();
    const one = await hook(acme, ['key.*']);
    await revokedKey(acme);
    await publish();
    const stopped = await claimDelivery(h.db.knex, one.id as WebhookId);
    if (stopped === undefined) expect.fail();
    await makeDue();
    await sendDue();
    receiver.answer(one.path, (response) => void response.writeHead(500).end());
    expect(await attemptDelivery(h.webhooks, stopped)).toBe('retried');
    expect(requestsTo(one)).toHaveLength(2);
    expect(await deliveries(acme, one)).toMatchObject([{ state: 'delivered', attempts: 2, status: 204 }]);
  });

  test('gets a delivery that is replayed during an attempt, however the attempt ends', async () => {
    const acme = await newTenant();
    const one = await hook(acme, ['key.*']);
    const isAfterClaim = `select next_attempt_at = attempted_at + interval '30 seconds' as is_after_claim from webhook_deliveries`;
    for (const ends of [
      (claimed: ClaimedDelivery) =>
        saveAttempt(h.db.knex, claimed, { state: 'failed', status: 500, answer: null, error: 'failed' }),
      (claimed: ClaimedDelivery) => releaseDelivery(h.db.knex, claimed),
    ]) {
      await run('delete from webhook_deliveries');
      await revokedKey(acme);
      await publish();
      const claimed = (await claimDelivery(h.db.knex, one.id as WebhookId)) ?? expect.fail();
      await on(acme, one, 'POST', `/deliveries/${claimed.id}/replay`);
      await ends(claimed);
      expect(await deliveries(acme, one)).toMatchObject([{ state: 'waiting', attempts: 0, status: null, error: null }]);
      expect(await run(isAfterClaim)).toEqual([{ is_after_claim: true }]);
    }
    await makeDue();
    await sendDue();
    expect(await deliveries(acme, one)).toMatchObject([{ state: 'delivered', attempts: 1 }]);
  });

  test('is tested at once, also while the webhook is disabled, and a failed test is not repeated', async () => {
    const acme = await newTenant();
    const one = await hook(acme, ['key.*']);
    await on(acme, one, 'PATCH', '', { enabled: false });
    expect((await on(acme, one, 'POST', '/test')).json).toMatchObject({
      type: 'webhook.test',
      state: 'delivered',
      status: 204,
    });
    receiver.answer(one.path, (response) => void response.writeHead(503).end('later'));
    const failed = await on(acme, one, 'POST', '/test');
    expect(failed.json).toMatchObject({ state: 'failed', status: 503, answer: 'later', next_attempt_at: null });
    const audited = (await h.audit('webhook.test')).filter((row) => row['target_id'] === one.id);
    expect(audited.map((row) => row['result'])).toEqual(['success', 'failure']);
  });
});

describe('an event without a change of its own', () => {
  const HOUR = `interval '1 hour'`;

  test('announces a key 14, 7 and 1 days before its end and at its end, once over all processes', async () => {
    const acme = await newTenant();
    const one = await hook(acme, ['key.*']);
    const [key, revoked] = [await newKey(acme), await newKey(acme)];
    await announceStates(h.db, HOUR_MS);
    for (const days of [14, 7, 1, 0]) {
      // The key reaches the time as if the last run had been an hour ago.
      await run(`update key_end_cursors set ends_before = now() + make_interval(days => days) - ${HOUR}, key_id = ''`);
      await run(
        `update api_keys set expires_at = now() + make_interval(days => $1) - interval '30 minutes', revoked_at = case id when $3 then now() end
         where id in ($2, $3)`,
        days,
        key,
        revoked,
      );
      await Promise.all([announceStates(h.db, HOUR_MS), announceStates(h.db, HOUR_MS)]);
      await announceStates(h.db, HOUR_MS);
    }
    await publish();
    await sendDue();
    const seen = eventsAt(one).map(({ type, data }) => {
      const { target, after } = data as Json;
      return [type, (target as Json)['id'], (after as Json)['days']];
    });
    expect(seen).toEqual([
      ['key.expiring', key, 14],
      ['key.expiring', key, 7],
      ['key.expiring', key, 1],
      ['key.expired', key, undefined],
    ]);
  });

  test('is found without a look at the keys that end later or have ended before', async () => {
    const acme = await newTenant();
    await run(
      `insert into api_keys (id, tenant_id, description, digest, prefix, last_four, scopes, expires_at, created_by)
       select 'key_' || lpad(n::text, 26, '0'), $1, '', sha256(n::text::bytea), 'psk_0000', '0000', '{}',
         now() + interval '1 year' * case n % 2 when 0 then 1 else -1 end, 'a test' from generate_series(1, 1000) n`,
      acme.id,
    );
    await announceStates(h.db, HOUR_MS);
    await transaction(h.db, async (trx) => {
      // The connection may not have reported yet what it read before.
      const read = async (): Promise<unknown> => {
        const counted = `select seq_tup_read + idx_tup_fetch as keys from pg_stat_xact_user_tables where relname = 'api_keys'`;
        return (await trx.raw<{ rows: unknown }>(counted)).rows;
      };
      const before = await read();
      for (const { days } of await holdKeyEnds(trx)) expect(await advanceKeyEnds(trx, days, 200)).toEqual([]);
      expect(await read()).toEqual(before);
    });
  });

  test('announces a threshold once', async () => {
    const acme = await newTenant();
    const one = await hook(acme, ['budget.threshold', 'quota.*']);
    const budget = `bud_${'0'.repeat(26)}`;
    await run(
      `insert into budgets (id, tenant_id, name, unit, limit_amount, period, applies_to) values ($1, $2, 'Team', 'money', 5000000000, 'month', '{"tenant": true}')`,
      budget,
      acme.id,
    );
    await run(
      `insert into budget_alerts (tenant_id, budget_id, period, threshold, spent, limit_amount)
       values ($1, $2, $2 || ' 2026-11#0', 0.8, 4100000000, 5000000000), ($1, null, '2026-11', 1, 1005, 1000)`,
      acme.id,
      budget,
    );
    await Promise.all([announceAlerts(h.db), announceAlerts(h.db)]);
    await announceAlerts(h.db);
    await publish();
    await sendDue();
    const seen = eventsAt(one).map(({ type, data }) => [
      type,
      ((data as Json)['target'] as Json)['id'],
      (data as Json)['after'],
    ]);
    expect(seen).toEqual([
      [
        'budget.threshold',
        budget,
        { name: 'Team', unit: 'money', threshold: 0.8, spent: '4.10', limit: '5.00', period: '2026-11' },
      ],
      ['quota.threshold', acme.id, { threshold: 1, spent: 1005, limit: 1000, period: '2026-11' }],
    ]);
  });

  test('announces the keys of an issuer when they become stale, once until they are fetched again', async () => {
    const acme = await newTenant();
    const one = await hook(acme, ['issuer.*']);
    const body = { name: 'keycloak', issuer: `https://${unique('login')}.example`, audiences: ['postern'] };
    const issuer = text((await h.api('POST', '/v1/iam/issuers', { as: acme.boss.token, body })).json, 'id');
    const fetched = (hoursAgo: number) =>
      run(
        `update issuer_keys set fetched_at = now() - make_interval(hours => $1), error = 'no answer' where issuer_id = $2`,
        hoursAgo,
        issuer,
      );
    await announceStates(h.db, HOUR_MS);
    for (const hours of [2, 0, 2]) {
      await fetched(hours);
      await Promise.all([announceStates(h.db, HOUR_MS), announceStates(h.db, HOUR_MS)]);
    }
    await publish();
    await sendDue();
    expect(typesAt(one)).toEqual(['issuer.keys_stale', 'issuer.keys_stale']);
  });

  test('announces the lock of an account once, and the reuse of a refresh token', async () => {
    const acme = await newTenant();
    const one = await hook(acme, ['login.locked', 'session.*']);
    const email = `${unique('ada')}@example.test`;
    const made = await h.api('POST', '/v1/iam/users', {
      as: acme.boss.token,
      body: { email, name: 'Ada', password: 'a lake of tin whistles' },
    });
    const log = (password: string) => h.api('POST', '/v1/auth/login', { body: { email, password } });
    const { json } = await log('a lake of tin whistles');
    const refresh = () => h.api('POST', '/v1/auth/refresh', { body: { refresh_token: text(json, 'refresh_token') } });
    await refresh();
    await run(`update refresh_tokens set used_at = now() - interval '1 hour' where used_at is not null`);
    expect(outcome(await refresh())).toMatch(/^401/);
    for (let n = 0; n < 10; n++) expect((await log('wrong')).status).toBe(401);
    for (let n = 0; n < 2; n++) expect((await log('wrong')).status).toBe(429);
    await publish();
    await sendDue();
    const seen = eventsAt(one).map(({ type, data }) => [type, ((data as Json)['target'] as Json)['type']]);
    expect(seen).toEqual([
      ['session.reuse_detected', 'session'],
      ['login.locked', 'user'],
    ]);
    expect(eventsAt(one)[1]?.['data']).toMatchObject({ target: { id: made.json['id'] } });
  });
});

describe('patterns', () => {
  test('select the event with a name of its own before the row of the audit log', () => {
    const revoke = { action: 'api_key.revoke', result: 'success' } as const;
    expect(
      [
        ['*'],
        ['key.*'],
        ['audit.*'],
        ['audit.api_key.*'],
        ['audit.api_key.revoke'],
        ['budget.*'],
        ['key.revoked.*'],
      ].map((patterns) => selectedEvent(patterns, revoke)),
    ).toEqual(['key.revoked', 'key.revoked', ...Array(3).fill('audit.api_key.revoke'), undefined, undefined]);
    // A rejected attempt revokes nothing.
    expect(selectedEvent(['key.*'], { ...revoke, result: 'refused' })).toBeUndefined();
    expect(['key', '**', 'Key.*', '.*', 'key.*.x'].map((text) => patternProblem(text) === undefined)).toEqual(
      Array(5).fill(false),
    );
  });
});
