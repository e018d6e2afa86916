/** Keys without a secret: tokens of an issuer prove them. */

import { createHash, randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { makeId } from '../../src/domain/ids.ts';
import { type Harness, it, outcome, type Person, rows, text, unique } from './harness.ts';
import { type StoredTestIssuer, storeIssuer } from './stored-issuers.ts';

const ACME = unique('acme');
const GLOBEX = unique('globex');
const KEYS = '/v1/iam/api-keys';

let h: Harness;
let boss: Person;
/** Holds admin:keys and chat:write. */
let clerk: Person;
/** Holds chat:write. */
let ada: Person;
/** Its tokens prove users. */
let staff: StoredTestIssuer;
it.beforeAll(async ({ harness }) => {
  h = harness;
  for (const id of [ACME, GLOBEX]) await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  const role = (name: string, permissions: string[]) =>
    h.api('POST', '/v1/iam/roles', { as: h.root.token, tenant: ACME, body: { name, permissions } });
  await role('clerk', ['admin:keys', 'chat:write']);
  await role('writer', ['chat:write']);
  boss = await h.person(ACME, ['tenant-admin']);
  clerk = await h.person(ACME, ['clerk']);
  ada = await h.person(ACME, ['writer']);
  // Its tokens prove no user.
  await storeIssuer(h.db, ACME, 'cluster');
  staff = await storeIssuer(h.db, ACME, 'staff', {});
  await storeIssuer(h.db, GLOBEX, 'globex-cluster');
});

let subject = '';
beforeEach(() => {
  subject = unique('system:serviceaccount:agents');
});

const create = (proof: unknown, body: object = {}, as: Person = boss) =>
  h.api('POST', KEYS, {
    as: as.token,
    body: { description: 'pod', scopes: ['chat:write'], expires_in_days: 1, proof, ...body },
  });
const put = (id: string, body: object, as: Person = boss) => h.api('PUT', `${KEYS}/${id}`, { as: as.token, body });
const made = async (proof: unknown, body: object = {}, as: Person = boss) => {
  const reply = await create(proof, body, as);
  expect(outcome(reply)).toBe('201');
  return text(reply.json, 'id');
};
const shown = async (id: string) => (await h.api('GET', `${KEYS}/${id}`, { as: boss.token })).json;
const link = (person: Person, issuer: StoredTestIssuer, of: string) =>
  h.db.knex('user_identities').insert({ issuer_id: issuer.id, subject: of, user_id: person.id });

describe('creating a key with a proof', () => {
  test('shows the proof and no secret, and the audit row has it', async () => {
    const proof = { issuer: 'cluster', subject, claims: [{ claim: '/kubernetes.io/namespace', in: ['agents', 'a*'] }] };
    const reply = await create(proof, { rate_limit_rpm: 6, user_id: ada.id });
    expect(outcome(reply)).toBe('201');
    expect(reply.json).toMatchObject({ proof, prefix: '', last_four: '', imported: false, user_id: ada.id });
    expect(reply.json).not.toHaveProperty('key');
    expect(reply.json).not.toHaveProperty('secret_available');
    const id = text(reply.json, 'id');
    expect(await shown(id)).toEqual(reply.json);
    expect((await h.audit('api_key.create')).at(-1)).toMatchObject({ target_id: id, after: { proof } });
  });

  test('without claims, any token with the subject proves it', async () => {
    expect(await shown(await made({ issuer: 'cluster', subject }))).toMatchObject({
      proof: { issuer: 'cluster', subject, claims: [] },
    });
  });

  test('gives it a digest of a text that no header can carry', async () => {
    const id = await made({ issuer: 'cluster', subject });
    const digest = createHash('sha256').update(`\0proof\0${id}`).digest();
    expect(await h.db.knex('api_keys').where({ id, digest }).first('proof_is_glob')).toEqual({ proof_is_glob: false });
  });

  test('a repeated request with its Idempotency-Key has the same answer', async () => {
    const call = {
      as: boss.token,
      headers: { 'idempotency-key': unique('again') },
      body: { description: 'pod', scopes: ['chat:write'], expires_in_days: 1, proof: { issuer: 'cluster', subject } },
    };
    const first = await h.api('POST', KEYS, call);
    expect(outcome(first)).toBe('201');
    expect((await h.api('POST', KEYS, call)).json).toEqual(first.json);
  });

  test.each([
    ['an unknown issuer', { issuer: 'unknown' }, '/proof/issuer'],
    ['the issuer of another tenant', { issuer: 'globex-cluster' }, '/proof/issuer'],
    ['nine stars', { subject: 'a*b*c*d*e*f*g*h*i*' }, '/proof/subject'],
    ['a glob of 257 characters', { subject: `${'s'.repeat(256)}*` }, '/proof/subject'],
    ['an empty subject', { subject: '' }, '/proof/subject'],
    ['a subject of 513 characters', { subject: 's'.repeat(513) }, '/proof/subject'],
    ['a NUL in the subject', { subject: 'a\0b' }, '/proof/subject'],
    ['a claim that is no pointer', { claims: [{ claim: '/a~2', in: ['x'] }] }, '/proof/claims/0/claim'],
    ['nine stars in a claim', { claims: [{ claim: 'a', in: ['x', '*********'] }] }, '/proof/claims/0/in/1'],
    ['a claim without values', { claims: [{ claim: 'a', in: [] }] }, '/proof/claims/0/in'],
    ['an unknown member', { secret: 'x' }, '/proof/secret'],
  ])('%s is 422 with its path', async (_name, part, path) => {
    const reply = await create({ issuer: 'cluster', subject, ...part });
    expect([outcome(reply), reply.json['errors']]).toEqual([
      '422 invalid_field',
      [expect.objectContaining({ path: expect.stringMatching(new RegExp(`^${path}`)) })],
    ]);
  });

  test('an import accepts no proof', async () => {
    const [digest, imported] = [randomBytes(32).toString('hex'), `${KEYS}/import`];
    const row = {
      digest,
      prefix: 'sk-',
      last_four: 'abcd',
      description: 'old',
      scopes: ['chat:write'],
      expires_in_days: 1,
    };
    const send = async (body: object) =>
      outcome(await h.api('POST', imported, { as: h.root.token, tenant: ACME, body: { keys: [body] } }));
    expect(await send({ ...row, proof: { issuer: 'cluster', subject } })).toBe('422 invalid_field');
    expect(await send(row)).toBe('200');
  });
});

describe('changing a proof', () => {
  test('is the rotation of the key: it ends the sessions that tokens began, and a rotation is 422', async () => {
    const id = await made({ issuer: 'cluster', subject });
    const session = makeId('ses', Date.now(), randomBytes(10));
    await h.db.knex('sessions').insert({ id: session, api_key_id: id, expires_at: new Date(Date.now() + 3_600_000) });
    const ended = async () => (await h.db.knex('sessions').where({ id: session }).first('ended_at'))?.ended_at;
    const proof = { issuer: 'staff', subject: `${subject}-2`, claims: [{ claim: 'groups', in: ['ops'] }] };
    expect(outcome(await put(id, { proof: { issuer: 'cluster', subject, claims: [] } }))).toBe('200');
    expect(await ended()).toBeNull();
    expect((await put(id, { proof })).json).toMatchObject({ id, proof });
    expect(await ended()).toBeInstanceOf(Date);
    expect(await shown(id)).toMatchObject({ proof });
    expect((await h.audit('api_key.update')).at(-1)).toMatchObject({
      before: { proof: { subject } },
      after: { proof },
    });
    const rotation = await h.api('POST', `${KEYS}/${id}/rotate`, { as: boss.token, body: {} });
    expect([outcome(rotation), rotation.json['detail']]).toEqual([
      '422 invalid_field',
      expect.stringContaining('The key has no secret to rotate. Change its proof instead.'),
    ]);
  });

  test('a key keeps its kind: with a secret, or without one', async () => {
    const proof = { issuer: 'cluster', subject };
    const withSecret = text((await create(null)).json, 'id');
    expect(outcome(await put(withSecret, { proof }))).toBe('422 invalid_field');
    expect(outcome(await put(withSecret, { proof: null }))).toBe('200');
    const without = await made(proof);
    expect(outcome(await put(without, { proof: null }))).toBe('422 invalid_field');
    expect(outcome(await h.api('DELETE', `${KEYS}/${without}`, { as: boss.token }))).toBe('204');
    expect(outcome(await put(without, { proof }))).toBe('409 revoked');
    expect(await shown(without)).toMatchObject({ status: 'revoked', proof });
  });

  test('a list filters by the name of the issuer, and shows the proof', async () => {
    const id = await made({ issuer: 'cluster', subject });
    const listed = async (query: string, as: Person = boss) =>
      rows(await h.api('GET', `${KEYS}?limit=200&${query}`, { as: as.token }));
    const found = await listed('issuer=cluster');
    expect(found.find((key) => key['id'] === id)).toMatchObject({ proof: { issuer: 'cluster', subject } });
    expect(found.every(({ proof }) => JSON.stringify(proof).includes('"issuer":"cluster"'))).toBe(true);
    expect((await listed('issuer=staff')).map((key) => key['id'])).not.toContain(id);
    expect(await listed('issuer=globex-cluster')).toEqual([]);
    const count = await h.api('GET', `${KEYS}?issuer=cluster&count=true&limit=1`, { as: boss.token });
    expect(count.json['total']).toBe(found.length);
  });
});

describe('a caller gives no more by a proof than it has', () => {
  test('creating a key and changing its proof need the permissions of the key', async () => {
    expect(outcome(await create({ issuer: 'cluster', subject }, { scopes: ['models:read'] }, clerk))).toBe(
      '403 escalation',
    );
    const own = await made({ issuer: 'cluster', subject }, {}, clerk);
    expect(outcome(await put(own, { proof: { issuer: 'cluster', subject: `${subject}-2` } }, clerk))).toBe('200');
    const strong = await made({ issuer: 'cluster', subject: `${subject}-3` }, { scopes: ['models:read'] });
    expect(outcome(await put(strong, { proof: { issuer: 'cluster', subject: `${subject}-4` } }, clerk))).toBe(
      '403 escalation',
    );
  });

  test('a key of its own with a proof needs admin:keys, because a subject belongs to no caller', async () => {
    expect(outcome(await create({ issuer: 'cluster', subject }, {}, ada))).toBe('403 insufficient_permission');
    expect(outcome(await create(null, {}, ada))).toBe('201');
    const owned = await made({ issuer: 'cluster', subject }, { user_id: ada.id });
    expect(outcome(await put(owned, { name: 'mine' }, ada))).toBe('200');
    expect(outcome(await put(owned, { proof: { issuer: 'cluster', subject: `${subject}-2` } }, ada))).toBe(
      '403 insufficient_permission',
    );
    expect(outcome(await h.api('DELETE', `${KEYS}/${owned}`, { as: ada.token }))).toBe('204');
  });

  test('the proof of a key is set by no key that ends earlier', async () => {
    const expires_in_days = 2;
    const short = await create(null, { scopes: ['admin:keys', 'chat:write'] });
    const key = { id: boss.id, token: text(short.json, 'key') };
    expect(outcome(await create({ issuer: 'cluster', subject }, { expires_in_days }, key))).toBe('403 escalation');
    const long = await made({ issuer: 'cluster', subject }, { expires_in_days });
    const proof = { issuer: 'cluster', subject: `${subject}-2` };
    expect(outcome(await put(long, { proof }, key))).toBe('403 escalation');
    expect(outcome(await put(long, { name: 'long' }, key))).toBe('200');
  });

  test('a subject of a stronger user or key is taken by no weaker caller', async () => {
    await link(boss, staff, subject);
    await link(ada, staff, `${subject}-ada`);
    expect(outcome(await create({ issuer: 'staff', subject }, {}, clerk))).toBe('403 escalation');
    expect(outcome(await create({ issuer: 'staff', subject: `${subject}-ada` }, {}, clerk))).toBe('201');
    await made({ issuer: 'cluster', subject }, { scopes: ['models:read'] });
    expect(outcome(await create({ issuer: 'cluster', subject }, {}, clerk))).toBe('403 escalation');
    expect(outcome(await create({ issuer: 'cluster', subject }, {}, boss))).toBe('201');
  });

  test('a subject that the glob of a stronger key matches is taken by no weaker caller', async () => {
    const own = await storeIssuer(h.db, ACME, unique('pods'));
    const exact = (of: string, as: Person) => create({ issuer: own.name, subject: of }, {}, as).then(outcome);
    await made({ issuer: own.name, subject: 'weak:*' });
    const strong = await made({ issuer: own.name, subject: 'strong:*:pod' }, { scopes: ['models:read'] });
    await h.api('POST', `${KEYS}/${strong}/disable`, { as: boss.token });
    expect(await exact('strong:1:pod', clerk)).toBe('403 escalation');
    expect(await exact('strong:1:job', clerk)).toBe('201');
    expect(await exact('weak:1', clerk)).toBe('201');
    expect(await exact('strong:1:pod', boss)).toBe('201');
    const other = await made({ issuer: own.name, subject }, {}, clerk);
    const proof = { issuer: own.name, subject: 'strong:2:pod' };
    expect(outcome(await put(other, { proof }, clerk))).toBe('403 escalation');
    expect(outcome(await put(other, { proof }, boss))).toBe('200');
  });

  test('a key of the caller, and one whose owner was deleted, lose their tokens to any caller with admin:keys', async () => {
    const own = await storeIssuer(h.db, ACME, unique('pods'));
    const gone = await h.person(ACME, ['tenant-admin']);
    const at = { issuer: own.name, subject: 'mine:*' };
    await made(at, { scopes: ['models:read'], user_id: clerk.id });
    const left = await made(at, { scopes: ['models:read'], user_id: gone.id });
    await h.db
      .knex('api_keys')
      .where({ id: left })
      .update({ expires_at: new Date(Date.now() - 1000) });
    const exact = () => create({ issuer: own.name, subject: 'mine:1' }, {}, clerk).then(outcome);
    expect(await exact()).toBe('403 escalation');
    await h.api('DELETE', `/v1/iam/users/${gone.id}`, { as: boss.token });
    expect(await exact()).toBe('201');
  });

  test('an expired key with an exact subject is revived only by a caller that may take the subject', async () => {
    const own = await storeIssuer(h.db, ACME, unique('pods'));
    const late = await made({ issuer: own.name, subject: 'pod:1' }, {}, clerk);
    await h.db
      .knex('api_keys')
      .where({ id: late })
      .update({ expires_at: new Date(Date.now() - 1000) });
    expect(outcome(await put(late, { expires_in_days: 1 }, clerk))).toBe('200');
    await h.db
      .knex('api_keys')
      .where({ id: late })
      .update({ expires_at: new Date(Date.now() - 1000) });
    await made({ issuer: own.name, subject: 'pod:*' }, { scopes: ['models:read'] });
    expect(outcome(await put(late, { name: 'late' }, clerk))).toBe('200');
    expect(outcome(await put(late, { expires_in_days: 1 }, clerk))).toBe('403 escalation');
    expect(outcome(await put(late, { expires_in_days: 1 }, boss))).toBe('200');
  });

  test('if another claim than sub identifies the users of the issuer, a subject needs admin:issuers', async () => {
    const exact = (issuer: string, as: Person) => create({ issuer, subject }, {}, as).then(outcome);
    const entra = await storeIssuer(h.db, ACME, unique('entra'), { subjectClaim: 'oid' });
    const pointer = await storeIssuer(h.db, ACME, unique('pointer'), { subjectClaim: '/sub' });
    // The claim oid of the token with this sub has another value, by which the user is linked.
    await link(boss, entra, unique('oid'));
    expect(await exact(entra.name, clerk)).toBe('403 escalation');
    expect(await exact(entra.name, boss)).toBe('201');
    expect(await exact(pointer.name, clerk)).toBe('201');
  });

  test('a glob that may match tokens of users or of other keys needs admin:issuers', async () => {
    const own = await storeIssuer(h.db, ACME, unique('runner'));
    const glob = (issuer: string, as: Person) => create({ issuer, subject: `${subject}*` }, {}, as).then(outcome);
    expect(await glob('staff', clerk)).toBe('403 escalation');
    expect(await glob(own.name, clerk)).toBe('201');
    expect(await glob(own.name, clerk)).toBe('403 escalation');
    expect(await glob(own.name, boss)).toBe('201');
    expect(await glob('staff', boss)).toBe('201');
  });
});

test('keys with an equal proof are allowed, and each says that a token proves none of them', async () => {
  const proof = { issuer: 'cluster', subject, claims: [{ claim: 'ns', in: ['a'] }] };
  const one = await made(proof);
  const other = await made({ ...proof, claims: [{ claim: 'ns', in: ['b'] }] });
  expect(await shown(one)).toMatchObject({ proof });
  expect((await put(other, { proof })).json['proof']).toEqual({ ...proof, ambiguous: true });
  expect((await shown(one))['proof']).toEqual({ ...proof, ambiguous: true });
  await h.api('DELETE', `${KEYS}/${other}`, { as: boss.token });
  expect((await shown(one))['proof']).toEqual(proof);
  expect((await shown(other))['proof']).toEqual(proof);
});

test('an issuer has at most 1,000 keys with a glob, and a subject at most 100 keys; revoked ones do not count', async () => {
  const full = await storeIssuer(h.db, ACME, unique('full'));
  const store = async (count: number, of: string, isGlob: boolean) => {
    const keys = Array.from({ length: count }, () => ({
      ...{ id: makeId('key', Date.now(), randomBytes(10)), tenant_id: ACME, description: '', digest: randomBytes(32) },
      ...{
        prefix: '',
        last_four: '',
        scopes: ['chat:write'],
        created_by: 'system',
        expires_at: new Date(2_000_000_000_000),
      },
      ...{ proof_issuer_id: full.id, proof_subject: of, proof_is_glob: isGlob, proof_claims: '[]' },
    }));
    await h.db.knex('api_keys').insert(keys);
    return keys.map(({ id }) => id);
  };
  const globs = await store(1000, 'glob*', true);
  expect(outcome(await create({ issuer: full.name, subject: 'other*' }))).toBe('409 quota_exceeded');
  expect(outcome(await create({ issuer: full.name, subject }))).toBe('201');
  expect(outcome(await put(globs[0] ?? '', { proof: { issuer: full.name, subject: 'changed*' } }))).toBe('200');
  await h.api('DELETE', `${KEYS}/${globs[1]}`, { as: boss.token });
  const replies = await Promise.all([1, 2, 3].map(() => create({ issuer: full.name, subject: 'other*' })));
  expect(replies.map(outcome).sort()).toEqual(['201', '409 quota_exceeded', '409 quota_exceeded']);

  await store(99, subject, false);
  expect(outcome(await create({ issuer: full.name, subject }))).toBe('409 quota_exceeded');
});
