import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileGrant, compilePolicies } from '../../src/decision/compile.ts';
import type { Allow, KeyPrincipal, Principal, TenantView } from '../../src/decision/model.ts';
import { makeId, parseId, parseRoleName, parseTenantId } from '../../src/domain/ids.ts';
import { readAccessLog } from '../../src/extauthz/access-log/reader.ts';
import type { Aliases } from '../../src/extauthz/check-input.ts';
import { createAllowWriter } from '../../src/extauthz/check-response.ts';
import { encodeHeaderText, headerName, putHeader } from '../../src/extauthz/header-options.ts';
import { createRandomPool } from '../../src/extauthz/random-pool.ts';
import { createRequestIds } from '../../src/extauthz/request-id.ts';
import { beginWriting, finishWriting } from '../../src/extauthz/wire-write.ts';
import { anyCharacter, runs } from '../support/properties.ts';
import { accessLog } from './support/access-log.ts';
import { readAnswer } from './support/definition.ts';
import { NOW_MS, OWNED_KEY, present, ROUTE_LINES, TENANT_KEY, USER } from './support/little-world.ts';

const random = createRandomPool();
const writer = createAllowWriter(false, random);
const REQUEST_ID = makeId('req', NOW_MS, Buffer.alloc(10, 9));
const OVERWRITE_IF_EXISTS_OR_ADD = 2;

function tenant(id: string): TenantView {
  const view = { status: 'active', settings: {}, quotas: {}, roles: new Map(), policies: compilePolicies([]) } as const;
  return { id: present(parseTenantId(id)), ...view };
}

const CHAT = present(ROUTE_LINES.find((line) => line.template === '/v1/chat/completions' && line.method === 'POST'));
const MODELS = present(ROUTE_LINES.find((line) => line.template === '/v1/models' && line.method === 'GET'));

const ALLOW: Allow = {
  kind: 'allow',
  route: CHAT,
  principal: OWNED_KEY,
  roles: OWNED_KEY.owner?.roles ?? [],
  tenant: tenant('acme'),
  resources: [],
  model: undefined,
  maxTokens: undefined,
  defaultModel: undefined,
  askedTokens: undefined,
  askedChoices: 1,
  promptTokens: 0,
  inlineFiles: 0,
};

const RESERVED = { reservation: 'ab'.repeat(16), rate: undefined };
const NOT_LIMITED = { reservation: undefined, rate: undefined };

const NO_ALIASES: Aliases = { names: [], areAll: false };
const answerTo = (allow: Allow, aliases = NO_ALIASES): ReturnType<typeof readAnswer> =>
  readAnswer(writer.allow(allow, NOT_LIMITED, REQUEST_ID, aliases, false));

const ids = fc.uint8Array({ minLength: 10, maxLength: 10 });
const roles = fc.array(
  fc.stringMatching(/^[a-z][a-z0-9_-]{0,62}$/).map((name) => present(parseRoleName(name))),
  { maxLength: 300 },
);
const principal: fc.Arbitrary<Principal> = fc.oneof(
  fc.record({
    kind: fc.constant('user' as const),
    id: ids.map((bytes) => makeId('usr', NOW_MS, bytes)),
    tenantId: fc.constant(USER.tenantId),
    roles,
    platformAdmin: fc.boolean(),
    sessionId: fc.constant(undefined),
  }),
  fc.record({
    kind: fc.constant('api_key' as const),
    id: ids.map((bytes) => makeId('key', NOW_MS, bytes)),
    tenantId: fc.constant(USER.tenantId),
    grant: fc.constant(compileGrant(['*'], {})),
    owner: fc.option(fc.record({ id: ids.map((bytes) => makeId('usr', NOW_MS, bytes)), roles }), { nil: undefined }),
    rateLimitRpm: fc.constant(undefined),
  }),
);
const text = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 600 }),
  fc.constantFrom('', 'llama-3-8b', 'a'.repeat(100_000), '\ud800', '%41'),
);
const allow: fc.Arbitrary<Allow> = fc.record({
  kind: fc.constant('allow' as const),
  route: fc.constantFrom(...ROUTE_LINES),
  principal,
  roles,
  tenant: fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,62}$/).map(tenant),
  resources: fc.constant([]),
  model: fc.option(text, { nil: undefined }),
  maxTokens: fc.option(fc.nat(), { nil: undefined }),
  defaultModel: fc.option(text, { nil: undefined }),
  askedTokens: fc.constant(undefined),
  askedChoices: fc.constant(1),
  promptTokens: fc.constant(0),
  inlineFiles: fc.constant(0),
});
const aliases: fc.Arbitrary<Aliases> = fc.record({
  names: fc.array(
    fc.oneof(
      fc.constantFrom('x-postern-subject', 'x_postern_subject', 'x-postern-x', 'x.postern_roles', 'api_key'),
      fc.stringMatching(/^x[-_.]postern[-_.][a-z]{0,9}$/),
      fc.stringMatching(/^x[-_.]{1,2}tenant[-_.]{2}id$/),
    ),
  ),
  areAll: fc.boolean(),
});

describe('an allow, read by the complete definition', () => {
  test('sets every header once, by overwriting, and removes no header that it sets', () => {
    fc.assert(
      fc.property(allow, aliases, (decision, seen) => {
        const answer = answerTo(decision, seen);
        expect([answer.code, answer.kind]).toEqual([0, 'ok']);
        for (const option of answer.options) {
          expect(option.append).toEqual({ value: false });
          expect(option.append_action).toBe(OVERWRITE_IF_EXISTS_OR_ADD);
          expect(option.header.value).toMatch(/^[!-~]+$/);
        }
        const names = [...answer.options.map(({ header }) => header.key), ...answer.removed];
        expect(new Set(names).size).toBe(names.length);
        expect(names.filter((name) => name !== name.toLowerCase())).toEqual([]);
        expect(seen.names.filter((name) => !names.includes(name))).toEqual([]);
      }),
      { numRuns: runs(300) },
    );
  });

  test('with a token is the same answer with one more header, at any length', () => {
    const name = headerName('x-postern-token');
    const rate = { limit: 100, remaining: 7, resetSeconds: 30, windowSeconds: 60 };
    fc.assert(
      fc.property(
        allow,
        aliases,
        fc.integer({ min: 1, max: 8192 }),
        fc.constantFrom(NOT_LIMITED, { ...RESERVED, rate }),
        (decision, seen, length, admitted) => {
          const token = 'e'.repeat(length);
          const field = beginWriting(length + 100);
          putHeader(field, name, token);
          const encoded = finishWriting(field);
          const written = (value?: Buffer) =>
            readAnswer(writer.allow(decision, admitted, REQUEST_ID, seen, false, value));
          const [plain, extended] = [written(), written(encoded)];
          expect(extended.headers).toEqual({ ...plain.headers, 'x-postern-token': token });
          expect(extended.options).toHaveLength(plain.options.length + 1);
          expect(extended.removed).toEqual(plain.removed.filter((removed) => removed !== 'x-postern-token'));
          expect(plain.removed).toContain('x-postern-token');
          const rest = ({ code, kind, added, metadata }: typeof plain) => ({ code, kind, added, metadata });
          const { reservation: _plain, ...members } = plain.metadata;
          expect(rest(extended)).toMatchObject({ ...rest(plain), metadata: members });
        },
      ),
      { numRuns: runs(300) },
    );
  });

  test('with charges is the same answer with one more member of its metadata, which the access log returns', () => {
    const rate = { limit: 100, remaining: 7, resetSeconds: 30, windowSeconds: 60 };
    const texts = fc.oneof(
      fc.stringMatching(/^p1,2,3,4,5(;[mtr]bud_[0-9a-z]{26} 2026-11#0){0,16}$/),
      fc.integer({ min: 1, max: 8192 }).map((length) => 'b'.repeat(length)),
    );
    fc.assert(
      fc.property(
        allow,
        aliases,
        texts,
        fc.constantFrom(RESERVED, { ...RESERVED, rate }),
        (decision, seen, charges, admitted) => {
          const written = (more: object, header?: string) =>
            readAnswer(writer.allow(decision, { ...admitted, ...more }, REQUEST_ID, seen, false, undefined, header));
          const plain = written({});
          const metadata = { ...plain.metadata, charges };
          expect(written({ charges })).toEqual({ ...plain, metadata, options: expect.anything() });
          const value = '"team-a"; remaining=7; unit=tokens; reset=3';
          const added = { ...plain.added, 'x-postern-budget-remaining': value };
          expect(written({ charges }, value)).toEqual({ ...plain, metadata, added, options: expect.anything() });
          const [finished] = readAccessLog(accessLog({ decision: metadata })).finished;
          expect(finished?.charges).toBe(charges);
        },
      ),
      { numRuns: runs(200) },
    );
  });

  test('reports the principal to the upstream and to the access log', () => {
    fc.assert(
      fc.property(allow, (decision) => {
        const { headers, metadata } = answerTo(decision);
        const { principal: who } = decision;
        const owner = who.kind === 'user' ? who : who.owner;
        const set = (value: unknown): string | undefined =>
          value === undefined || value === '' ? undefined : String(value);
        expect(headers['x-postern-subject']).toBe(who.id);
        expect(headers['x-postern-subject-type']).toBe(who.kind);
        expect(headers['x-postern-user-id']).toBe(owner?.id);
        expect(headers['x-postern-tenant']).toBe(decision.tenant.id);
        expect(headers['x-tenant-id']).toBe(decision.tenant.id);
        expect(headers['x-postern-roles']).toBe(set(decision.roles.join(',')));
        expect(headers['x-postern-max-tokens']).toBe(set(decision.maxTokens));
        const model = headers['x-postern-default-model'];
        expect(model && decodeURIComponent(model)).toBe(set(decision.defaultModel)?.toWellFormed());
        expect(metadata).toMatchObject({
          subject: who.id,
          subject_type: who.kind,
          tenant: decision.tenant.id,
          route: `${decision.route.method} ${decision.route.template}`,
          request_id: REQUEST_ID,
        });
        expect(metadata['user']).toBe(owner?.id);
        expect(metadata['key']).toBe(who.kind === 'api_key' ? who.id : undefined);
        expect(metadata['model']).toBe((decision.model ?? decision.defaultModel)?.slice(0, 256).toWellFormed());
      }),
      { numRuns: runs(300) },
    );
  });

  test('removes every header of Postern that it does not set', () => {
    const { headers, removed } = answerTo({ ...ALLOW, principal: TENANT_KEY, roles: [] });
    const absent = ['x-postern-user-id', 'x-postern-roles', 'x-postern-max-tokens', 'x-postern-default-model'];
    expect(absent.filter((name) => name in headers)).toEqual([]);
    expect(removed).toEqual(expect.arrayContaining(absent));
  });

  test('removes method and path overrides, and the other spellings that were seen or that servers fold most', () => {
    const seen = ['x-postern_tenant', 'x-postern-evil', 'x--tenant-id', '-x-original-url', 'x-api_key'];
    const { removed } = answerTo(ALLOW, { names: seen, areAll: false });
    const names = ['x-http-method-override', 'x-http-method', 'x-method-override', 'x-original-url', 'x-rewrite-url'];
    const spellings = [
      'x_postern_subject',
      'x.postern.subject',
      'x_postern_subject_type',
      'x.postern.roles',
      'x_http_method_override',
      'x.rewrite.url',
      'x_api_key',
      'api.key',
    ];
    expect(removed).toEqual(expect.arrayContaining([...names, ...spellings, ...seen]));
  });

  test('removes every mixture of hyphen, underscore and dot in x-tenant-id, though the check saw none', () => {
    const { removed, headers } = answerTo(ALLOW);
    const mixed = ['-', '_', '.'].flatMap((first) => ['-', '_', '.'].map((second) => `x${first}tenant${second}id`));
    expect(removed.filter((name) => /^x.tenant.id$/.test(name)).sort()).toEqual(
      mixed.filter((name) => name !== 'x-tenant-id').sort(),
    );
    expect(headers['x-tenant-id']).toBe('acme');
  });

  test('removes every header that carries a credential unless it is to be forwarded, and their other spellings always', () => {
    const credentials = ['authorization', 'x-api-key', 'api-key'];
    const names = ['x--api-key', 'authorization_'];
    const seen = { names, areAll: false };
    expect(answerTo(ALLOW).removed).toEqual(expect.arrayContaining(credentials));
    const forwarding = createAllowWriter(true, random);
    const { removed } = readAnswer(forwarding.allow(ALLOW, NOT_LIMITED, REQUEST_ID, seen, false));
    expect(removed.filter((name) => credentials.includes(name))).toEqual([]);
    expect(removed).toEqual(expect.arrayContaining(['x_api_key', 'x.api.key', 'api_key', 'api.key', ...names]));
  });

  test('removes the spellings of the check and the true names only, if the check had every spelling', () => {
    const names = ['x_tenant_id', 'x_postern_user.id', 'x-postern-subject', 'x_postern_roles'];
    const { removed } = answerTo(ALLOW, { names, areAll: true });
    const isTrue = (name: string): boolean => /^[a-z]+(-[a-z]+)*$/.test(name);
    const isOther = (name: string): boolean => !isTrue(name);
    expect(new Set(removed.filter(isOther))).toEqual(new Set(names.filter(isOther)));
    const others = answerTo(ALLOW).removed.filter(isTrue);
    expect(new Set(removed.filter(isTrue))).toEqual(new Set(others));
    expect(others).toEqual(expect.arrayContaining(['authorization', 'x-api-key', 'x-http-method-override']));
  });

  test('a metered route asks for an answer that can be read', () => {
    expect(answerTo({ ...ALLOW, route: CHAT }).removed).toContain('accept-encoding');
    expect(answerTo({ ...ALLOW, route: MODELS }).removed).not.toContain('accept-encoding');
  });

  test('a limit of 0 is a limit', () => {
    expect(answerTo({ ...ALLOW, maxTokens: 0 }).headers['x-postern-max-tokens']).toBe('0');
  });

  test('no reservation comes twice', () => {
    const reservations = Array.from({ length: 2000 }, () => answerTo(ALLOW).metadata['reservation'] ?? '');
    expect(new Set(reservations).size).toBe(2000);
    expect(reservations.every((id) => /^[0-9a-f]{32}$/.test(id))).toBe(true);
  });

  test('on the Messages API the client also finds the request’s id in request-id, and nothing else differs', () => {
    for (const principal of [OWNED_KEY, USER]) {
      for (const requestId of [REQUEST_ID, makeId('req', NOW_MS, Buffer.alloc(10, 7))]) {
        const plain = readAnswer(writer.allow({ ...ALLOW, principal }, RESERVED, requestId, NO_ALIASES, false));
        const messages = readAnswer(writer.allow({ ...ALLOW, principal }, RESERVED, requestId, NO_ALIASES, true));
        expect(messages).toEqual({ ...plain, added: { 'x-request-id': requestId, 'request-id': requestId } });
      }
    }
  });

  test('an answer is not changed by the next one', () => {
    const first = writer.allow(ALLOW, NOT_LIMITED, REQUEST_ID, NO_ALIASES, false);
    const copy = Buffer.from(first);
    writer.allow({ ...ALLOW, principal: USER, roles: USER.roles }, NOT_LIMITED, REQUEST_ID, NO_ALIASES, false);
    expect(first).toEqual(copy);
  });
});

describe('a public allow', () => {
  test('removes every x-postern- name and nothing else, and sets nothing', () => {
    const names = ['x-postern_evil', 'x-postern-subject', 'x-tenant.id', 'x_api_key'];
    const answer = readAnswer(writer.public({ kind: 'public' }, REQUEST_ID, { names, areAll: false }));
    expect([answer.code, answer.kind, answer.options]).toEqual([0, 'ok', []]);
    expect(answer.removed.filter((name) => !/^x[-_.]postern[-_.]/.test(name))).toEqual([]);
    expect(answer.removed).toEqual(
      expect.arrayContaining(['x-postern-subject', 'x_postern_roles', 'x.postern.tenant', 'x-postern_evil']),
    );
    expect(answer.metadata).toEqual({ request_id: REQUEST_ID });
  });

  test('removes the true names and the spellings of the check, if the check had every spelling', () => {
    const names = ['x-postern_evil', 'x_postern_roles', 'x_api_key'];
    const { removed } = readAnswer(writer.public({ kind: 'public' }, REQUEST_ID, { names, areAll: true }));
    const isTrue = (name: string): boolean => /^x-postern-[a-z-]+$/.test(name);
    expect(removed.filter((name) => !isTrue(name)).sort()).toEqual(['x-postern_evil', 'x_postern_roles']);
    expect(removed).toContain('x-postern-subject');
  });
});

describe('free text in a header', () => {
  test('visible ASCII stays as it is, all else comes back by decoding once', () => {
    expect(encodeHeaderText('meta-llama/Llama-3_8b:free')).toBe('meta-llama/Llama-3_8b:free');
    expect(encodeHeaderText('a b\r\nx: y')).toBe('a%20b%0D%0Ax:%20y');
    expect(encodeHeaderText('100%')).toBe('100%25');
    expect(encodeHeaderText('ü')).toBe('%C3%BC');
  });
});

describe('request ids', () => {
  test('are those that everything else makes of the same time and randomness', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(2 ** 40), fc.uint8Array({ minLength: 10, maxLength: 10 })), { minLength: 1 }),
        (makings) => {
          const bytes = makings.map(([, random]) => random);
          const next = createRequestIds({ take: () => present(bytes.shift()) });
          for (const [nowMs, random] of makings) {
            const id = next(nowMs);
            expect(id).toBe(makeId('req', nowMs, random));
            expect(parseId('req', id)).toBe(id);
          }
        },
      ),
    );
  });
});

describe('answers of one shape', () => {
  const KEY: KeyPrincipal = {
    kind: 'api_key',
    id: makeId('key', NOW_MS, Buffer.alloc(10)),
    tenantId: USER.tenantId,
    grant: compileGrant(['*'], {}),
    owner: undefined,
    rateLimitRpm: undefined,
  };

  test('do not share data', () => {
    const shown = ['acme', 'beta', 'acme'].map((id, index) => {
      const requestId = makeId('req', NOW_MS, Buffer.alloc(10, index));
      const key = { ...KEY, id: makeId('key', NOW_MS, Buffer.alloc(10, index)) };
      const bytes = writer.allow(
        { ...ALLOW, principal: key, tenant: tenant(id), model: `m${index}`, maxTokens: 10 + index },
        NOT_LIMITED,
        requestId,
        NO_ALIASES,
        false,
      );
      const { metadata, headers } = readAnswer(bytes);
      expect(metadata).toMatchObject({
        subject: key.id,
        key: key.id,
        tenant: id,
        model: `m${index}`,
        request_id: requestId,
      });
      expect(metadata['reservation']).toMatch(/^[0-9a-f]{32}$/);
      expect(headers).toMatchObject({
        'x-postern-subject': key.id,
        'x-postern-tenant': id,
        'x-tenant-id': id,
        'x-postern-max-tokens': `${10 + index}`,
      });
      return metadata['reservation'];
    });
    expect(new Set(shown).size).toBe(3);
  });
});

describe('limits', () => {
  const count = fc.nat({ max: 1_000_000_000 });

  test('add their headers to the upstream’s answer and change nothing else of the allow', () => {
    fc.assert(
      fc.property(
        count,
        count,
        fc.integer({ min: 1, max: 60 }),
        count,
        fc.boolean(),
        roles,
        (limit, remaining, resetSeconds, windowSeconds, countsTokens, some) => {
          const allow: Allow = { ...ALLOW, principal: { ...USER, roles: some }, roles: some };
          const plain = readAnswer(
            writer.allow(allow, { reservation: 'ab'.repeat(16), rate: undefined }, REQUEST_ID, NO_ALIASES, false),
          );
          const rate = { limit, remaining, resetSeconds, windowSeconds };
          const tokenRate = countsTokens ? { ...rate, limit: 3 * limit, remaining: 2 * remaining } : undefined;
          const limited = readAnswer(
            writer.allow(allow, { reservation: 'ab'.repeat(16), rate, tokenRate }, REQUEST_ID, NO_ALIASES, false),
          );
          expect({ ...limited, added: {} }).toEqual({ ...plain, added: {} });
          expect(plain.added).toEqual({ 'x-request-id': REQUEST_ID });
          expect(limited.added).toEqual({
            'x-request-id': REQUEST_ID,
            'x-ratelimit-limit-requests': `${limit}`,
            'x-ratelimit-remaining-requests': `${remaining}`,
            'x-ratelimit-reset-requests': `${resetSeconds}s`,
            ratelimit: `"requests";r=${remaining};t=${resetSeconds}`,
            'ratelimit-policy': `"requests";q=${limit};w=${windowSeconds}`,
            ...(countsTokens && {
              'x-ratelimit-limit-tokens': `${3 * limit}`,
              'x-ratelimit-remaining-tokens': `${2 * remaining}`,
              'x-ratelimit-reset-tokens': `${resetSeconds}s`,
            }),
          });
        },
      ),
    );
  });

  test('add the reservation that identifies the end of the request, for any length', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[0-9a-f]{1,80}$/), count, (reservation, maxTokens) => {
        const allow = { ...ALLOW, maxTokens };
        const { metadata, headers } = readAnswer(
          writer.allow(allow, { reservation, rate: undefined }, REQUEST_ID, NO_ALIASES, false),
        );
        const plain = readAnswer(writer.allow(allow, NOT_LIMITED, REQUEST_ID, NO_ALIASES, false));
        expect(metadata).toEqual({ ...plain.metadata, reservation, settles: 'true' });
        expect(headers).toEqual(plain.headers);
      }),
    );
  });

  test('request a report of the end of a request only if it settles something', () => {
    expect(answerTo(ALLOW).metadata).not.toHaveProperty('settles');
  });
});
