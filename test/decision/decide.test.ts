import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileGrant, compilePolicies, compileTenant } from '../../src/decision/compile.ts';
import type { PolicyConditions } from '../../src/decision/condition-table.ts';
import { decide } from '../../src/decision/decide.ts';
import { explainDecision } from '../../src/decision/explain.ts';
import type { CheckInput, Decision, Identity, UserPrincipal } from '../../src/decision/model.ts';
import { parseRoute } from '../../src/decision/route-spec.ts';
import { buildRouteTable, matchRoute } from '../../src/decision/routes.ts';
import { makeId, parsePolicyName, parseTenantId } from '../../src/domain/ids.ts';
import type { PolicyRecord, ResourceConstraints, TenantRecord } from '../../src/domain/records.ts';
import { builtinRoles } from '../support/builtin-roles.ts';
import { enough, runs } from '../support/properties.ts';
import { checkInput, must, roleName } from '../support/world.ts';
import { naiveDecision } from './naive-decision.ts';
import {
  extraLines,
  granted,
  principalArbitrary,
  type RandomPrincipal,
  type RandomRequest,
  type RandomWorld,
  randomIdentity,
  randomSnapshot,
  reportingWorldArbitrary,
  requestArbitrary,
  withoutReports,
  withPolicies,
  worldArbitrary,
} from './worlds.ts';

const built = buildRouteTable(extraLines());
if (built.kind === 'error') throw new Error(built.message);
const { table } = built;
const NOW = Date.parse('2026-11-18T11:00:00Z');

function inputOf(request: RandomRequest): CheckInput {
  return checkInput({
    method: request.method,
    path: request.path,
    tenant: request.header,
    contentType: request.body === undefined ? undefined : 'application/json',
    body: new TextEncoder().encode(request.body ?? ''),
    clientAddress: request.address,
  });
}

function told(decision: Decision): string {
  if (decision.kind !== 'deny') return decision.kind;
  return decision.policy === undefined ? decision.code : `${decision.code} ${decision.policy}`;
}

/** The conditions of random worlds depend on the address only. */
function holds(policy: PolicyRecord, request: RandomRequest): boolean {
  const { ip_address: ip }: PolicyConditions = policy.conditions;
  if (ip === undefined) return true;
  if (request.address === undefined) return policy.effect === 'deny';
  return request.address.startsWith('10.') === (ip.in !== undefined);
}

const coversAll = (patterns: readonly string[]) => patterns.includes('*') || patterns.includes('*:*');

function naive(world: RandomWorld, principal: RandomPrincipal, request: RandomRequest): string {
  const { key, roles, scope } = principal;
  const effective = world.tenants.find((tenant) => tenant.id === (request.header ?? principal.tenant));
  const resources = request.resources.map((one) =>
    one.orDefault ? { kind: one.kind, name: effective?.settings.default_model } : one,
  );
  return naiveDecision(
    world.tenants,
    world.globals,
    {
      tenant: principal.tenant,
      platformAdmin:
        key === undefined && roles.some((one) => one === 'admin') && (scope === undefined || coversAll(scope)),
      roles: key === undefined || key.owned ? roles : undefined,
      scopes: key && { permissions: key.permissions, constraints: key.constraints },
      narrowedTo: scope,
    },
    { ...request, resources },
    (policy) => holds(policy, request),
  );
}

const byName = (left: PolicyRecord, right: PolicyRecord) => (left.name < right.name ? -1 : 1);

/** The report-only policy that alone, in force, changes the outcome: found by putting each in force. */
function naiveReport(world: RandomWorld, principal: RandomPrincipal, request: RandomRequest): string | undefined {
  const outcome = naive(world, principal, request);
  const wanted = outcome === 'allow' ? 'deny' : 'allow';
  if (!['allow', 'insufficient_permission', 'resource_not_permitted'].includes(outcome)) return undefined;
  const effective = world.tenants.find((tenant) => tenant.id === (request.header ?? principal.tenant));
  const listed = [...world.globals.toSorted(byName), ...(effective?.policies ?? []).toSorted(byName)];
  const found = listed.find((one) => {
    if (one.reports !== true || one.effect !== wanted) return false;
    const enforced = withPolicies(world, (policy) => (policy === one ? { ...policy, enabled: true } : policy));
    const then = naive(enforced, principal, request);
    return then === (wanted === 'allow' ? 'allow' : `denied_by_policy ${one.name}`);
  });
  return found && `${wanted} ${found.name}`;
}

function reportOf(decision: Decision): string | undefined {
  if (decision.kind === 'allow') return decision.wouldDeny && `deny ${decision.wouldDeny}`;
  return decision.kind === 'deny' && decision.wouldAllow !== undefined ? `allow ${decision.wouldAllow}` : undefined;
}

describe('report-only policies', () => {
  test('name the first policy that alone would change the outcome, and change nothing else of the decision', () => {
    const seen = new Map<string, number>();
    fc.assert(
      fc.property(reportingWorldArbitrary, principalArbitrary, requestArbitrary, (world, principal, request) => {
        const input = inputOf(request);
        const match = matchRoute(table, input);
        const identity = randomIdentity(principal);
        const snapshot = randomSnapshot(world, principal, request);
        const decision = decide(match, input, identity, snapshot, NOW);
        const report = reportOf(decision);
        expect(report).toBe(naiveReport(world, principal, request));

        const { wouldDeny, wouldAllow, ...rest } = { wouldDeny: undefined, wouldAllow: undefined, ...decision };
        const without = randomSnapshot(withoutReports(world), principal, request);
        const plain = decide(match, input, identity, without, NOW);
        expect(told(plain)).toBe(told(decision));
        if (plain.kind === 'deny') expect(rest).toEqual(plain);
        else expect({ ...rest, tenant: undefined }).toEqual({ ...plain, tenant: undefined });

        const explanation = explainDecision(match, input, identity, snapshot, NOW);
        expect([explanation.would_deny ?? undefined, explanation.would_allow ?? undefined]).toEqual([
          wouldDeny,
          wouldAllow,
        ]);
        const effect = report?.split(' ')[0] ?? 'none';
        seen.set(effect, (seen.get(effect) ?? 0) + 1);
      }),
      { numRuns: runs(2000) },
    );
    for (const effect of ['allow', 'deny']) expect(seen.get(effect) ?? 0).toBeGreaterThanOrEqual(enough(5));
  });
});

describe('the decision for random tenants and policies', () => {
  test('equals the naive decision, which applies the rules one by one, and an explanation does not change it', () => {
    const seen = new Map<string, number>();
    fc.assert(
      fc.property(worldArbitrary, principalArbitrary, requestArbitrary, (world, principal, request) => {
        const input = inputOf(request);
        const match = matchRoute(table, input);
        const identity = randomIdentity(principal);
        const snapshot = randomSnapshot(world, principal, request);
        const decision = decide(match, input, identity, snapshot, NOW);
        expect(told(decision)).toBe(naive(world, principal, request));

        const explanation = explainDecision(match, input, identity, snapshot, NOW);
        expect(explanation.code).toBe(decision.kind === 'deny' ? decision.code : 'allow');
        expect(explanation.policy ?? undefined).toBe(decision.kind === 'deny' ? decision.policy : undefined);
        const denies = explanation.policies
          .filter(({ matched, effect, mode }) => matched && effect === 'deny' && mode === 'enforce')
          .map((policy) => policy.name);
        if (explanation.policies.length > 0) expect(denies.length > 0).toBe(explanation.code === 'denied_by_policy');
        if (explanation.policy !== null) expect(denies).toContain(explanation.policy);
        const code = told(decision).split(' ')[0] ?? '';
        seen.set(code, (seen.get(code) ?? 0) + 1);
      }),
      { numRuns: runs(3000) },
    );
    // Worlds in which some outcome never comes would prove little.
    for (const code of [
      'allow',
      'denied_by_policy',
      'insufficient_permission',
      'resource_not_permitted',
      'max_tokens_exceeded',
      'tenant_mismatch',
    ]) {
      expect([code, seen.get(code) ?? 0]).toEqual([code, expect.toSatisfy((count: number) => count >= enough(5))]);
    }
  });
});

test('a scope removes permissions and adds none: what a narrowed session may do, its principal may do as well', () => {
  let narrower = 0;
  fc.assert(
    fc.property(worldArbitrary, principalArbitrary, requestArbitrary, granted, (world, principal, request, scope) => {
      const input = inputOf(request);
      const match = matchRoute(table, input);
      const snapshot = randomSnapshot(world, principal, request);
      const outcome = (narrowedTo: RandomPrincipal['scope']) =>
        decide(match, input, randomIdentity({ ...principal, scope: narrowedTo }), snapshot, NOW);
      const [whole, narrowed] = [outcome(undefined), outcome(scope)];
      if (narrowed.kind === 'allow') expect(told(whole)).toBe('allow');
      expect(told(outcome(['*']))).toBe(told(whole));
      if (whole.kind === 'allow' && narrowed.kind === 'deny') narrower++;
    }),
    { numRuns: runs(1000) },
  );
  expect(narrower).toSatisfy((count: number) => count >= enough(5));
});

const HOME = must(parseTenantId('home'), 'home');

function record(parts: Partial<TenantRecord> = {}): TenantRecord {
  return { id: HOME, status: 'active', settings: {}, quotas: {}, roles: [], policies: [], ...parts };
}

function userWith(roles: readonly string[]): UserPrincipal {
  const id = makeId('usr', 0, new Uint8Array(10));
  return { kind: 'user', id, tenantId: HOME, roles: roles.map(roleName), platformAdmin: false, sessionId: undefined };
}

function keyWith(scopes: readonly string[], constraints: ResourceConstraints = {}): Identity {
  const id = makeId('key', 0, new Uint8Array(10));
  const grant = compileGrant(scopes, constraints);
  return {
    kind: 'proved',
    principal: { kind: 'api_key', id, tenantId: HOME, grant, owner: undefined, rateLimitRpm: undefined },
  };
}

function ask(parts: Partial<CheckInput>, identity: Identity, tenant: TenantRecord = record()): Decision {
  const input = checkInput({ contentType: 'application/json', ...parts });
  const view = compileTenant(tenant);
  const snapshot = { own: view, effective: view, global: compilePolicies([]), builtinRoles };
  return decide(matchRoute(table, input), input, identity, identity.kind === 'proved' ? snapshot : undefined, NOW);
}

function chat(body: string): Partial<CheckInput> {
  return { method: 'POST', path: '/v1/chat/completions', body: new TextEncoder().encode(body) };
}

describe('a model that the decision cannot see', () => {
  const transcription = {
    method: 'POST',
    path: '/v1/audio/transcriptions',
    contentType: 'multipart/form-data; boundary=x',
  };

  test('is permitted by a grant without constraints on models, and by no narrower one', () => {
    expect(ask(transcription, keyWith(['audio:write'])).kind).toBe('allow');
    expect(ask(transcription, keyWith(['audio:write'], { models: ['*'] })).kind).toBe('allow');
    expect(ask(transcription, keyWith(['audio:write'], { models: ['whisper-1'] }))).toMatchObject({
      code: 'resource_not_permitted',
      detail: 'audio:write is granted, but not for models (the server finds none in the request).',
    });
  });

  test('is not taken to be the default model of the tenant', () => {
    const tenant = record({ settings: { default_model: 'whisper-1' } });
    const decision = ask(transcription, keyWith(['audio:write'], { models: ['whisper-1'] }), tenant);
    expect(decision).toMatchObject({ code: 'resource_not_permitted' });
    expect(ask(transcription, keyWith(['audio:write']), tenant)).toMatchObject({
      model: undefined,
      defaultModel: undefined,
    });
  });
});

describe('an allow', () => {
  test('names only roles that the tenant has, by the same list for the same user and tenant', () => {
    const view = compileTenant(
      record({ roles: [{ name: roleName('reader'), permissions: ['models:read'], constraints: {} }] }),
    );
    const snapshot = { own: view, effective: view, global: compilePolicies([]), builtinRoles };
    const input = checkInput({ method: 'GET', path: '/v1/models' });
    const match = matchRoute(table, input);
    const rolesOf = (principal: UserPrincipal) => {
      const decision = decide(match, input, { kind: 'proved', principal }, snapshot, NOW);
      return decision.kind === 'allow' ? decision.roles : undefined;
    };
    const holder = userWith(['auditor', 'deleted', 'reader']);
    expect(rolesOf(holder)).toEqual(['auditor', 'reader']);
    expect(rolesOf(holder)).toBe(rolesOf(holder));
    const other = userWith(['auditor', 'reader']);
    expect(rolesOf(other)).toBe(other.roles);
    expect(rolesOf(userWith(['deleted']))).toBeUndefined();
  });

  test('names the model of the body, the smallest limit in force and the requested amounts', () => {
    const settings = { default_model: 'd', max_tokens_per_request: 100 };
    const body = '{"model":"m","max_tokens":50,"max_completion_tokens":70,"n":2,"best_of":4}';
    expect(ask(chat(body), keyWith(['chat:write']), record({ settings }))).toMatchObject({
      kind: 'allow',
      model: 'm',
      defaultModel: undefined,
      maxTokens: 50,
      askedTokens: 50,
      askedChoices: 4,
      promptTokens: 1,
      inlineFiles: 0,
    });
  });

  test('asks for the answers to each prompt on a route for completions, built in or configured, and on no other', () => {
    const body = new TextEncoder().encode('{"prompt":["a","b","c"],"n":2}');
    const choices = (path: string) => {
      const decision = ask({ method: 'POST', path, body }, keyWith(['*']));
      return decision.kind === 'allow' ? decision.askedChoices : decision;
    };
    expect(['/v1/completions', '/v1/chat/completions', '/v1/responses'].map(choices)).toEqual([6, 2, 2]);
    const configured = ['/azure/{deployment}/completions', '/azure/{deployment}/chat/completions', '/v1/generate'].map(
      (path) => {
        const parsed = parseRoute({ method: 'POST', path, permission: 'chat:write', tokens: true });
        return parsed.kind === 'route' ? parsed.route.readsPrompts : parsed;
      },
    );
    expect(configured).toEqual([true, false, false]);
    const free = parseRoute({ method: 'POST', path: '/v2/completions', permission: 'chat:write', model: 'body' });
    expect(free).toMatchObject({ route: { readsPrompts: false } });
  });

  test("carries the tenant's default model and limit where the body names none", () => {
    const settings = { default_model: 'd', max_tokens_per_request: 100 };
    expect(ask(chat('{}'), keyWith(['chat:write']), record({ settings }))).toMatchObject({
      model: undefined,
      defaultModel: 'd',
      maxTokens: 100,
      askedTokens: undefined,
      resources: [{ kind: 'models', name: 'd' }],
    });
  });

  test('carries no limit where none is in force', () => {
    expect(ask(chat('{}'), keyWith(['chat:write']))).toMatchObject({
      kind: 'allow',
      maxTokens: undefined,
      defaultModel: undefined,
    });
  });

  test('names the model of the path', () => {
    const settings = { default_model: 'd', max_tokens_per_request: 100 };
    const allowed = ask({ path: '/v1/models/a/b' }, keyWith(['*:read']), record({ settings }));
    expect(allowed).toMatchObject({ kind: 'allow', model: 'a/b', defaultModel: undefined, maxTokens: undefined });
  });

  test('a limit counts only where tokens are metered', () => {
    const settings = { max_tokens_per_request: 1 };
    const path = { method: 'POST', path: '/v1/finetuning/jobs', body: new TextEncoder().encode('{"max_tokens":9}') };
    expect(ask(path, keyWith(['finetuning:*']), record({ settings }))).toMatchObject({
      kind: 'allow',
      maxTokens: undefined,
    });
  });

  test('with a limit of 0, no requested limit is permitted', () => {
    const settings = { max_tokens_per_request: 0 };
    expect(ask(chat('{"max_tokens":1}'), keyWith(['*']), record({ settings }))).toMatchObject({
      code: 'max_tokens_exceeded',
    });
  });
});

describe('a tenant that requires the usage of streams', () => {
  const strict = record({ settings: { require_stream_usage: true, max_tokens_per_request: 100 } });
  const stream = (path: string, more = '') => ask({ ...chat(`{"stream":true${more}}`), path }, keyWith(['*']), strict);
  const COMPLETIONS = ['/v1/chat/completions', '/v1/completions'];

  test('refuses a stream of completions without usage, and names the member', () => {
    for (const path of COMPLETIONS) {
      expect(stream(path)).toMatchObject({
        kind: 'deny',
        code: 'usage_required',
        param: 'stream_options',
        tenant: 'home',
      });
      expect(stream(path, ',"stream_options":{"include_usage":true}')).toMatchObject({ kind: 'allow' });
      expect(ask({ ...chat('{"stream":true}'), path }, keyWith(['*']))).toMatchObject({ kind: 'allow' });
      expect(ask({ ...chat('{}'), path }, keyWith(['*']), strict)).toMatchObject({ kind: 'allow' });
    }
  });

  test('refuses it on configured routes for completions, and on no route whose streams always report usage', () => {
    for (const path of ['/v1/responses', '/v1/messages']) expect(stream(path)).toMatchObject({ kind: 'allow' });
    const configured = ['/azure/{deployment}/chat/completions', '/v2/completions', '/v2/generate'].map((path) => {
      const parsed = parseRoute({ method: 'POST', path, permission: 'chat:write', tokens: true });
      return parsed.kind === 'route' ? parsed.route.usageOnRequest : parsed;
    });
    expect(configured).toEqual([true, true, false]);
    const free = parseRoute({ method: 'POST', path: '/v2/completions', permission: 'chat:write', model: 'body' });
    expect(free).toMatchObject({ route: { usageOnRequest: false } });
  });

  test('refuses it at step 15, after permissions, resources and the token limit', () => {
    const silent = chat('{"stream":true,"model":"m"}');
    expect(ask(silent, keyWith([]), strict)).toMatchObject({ code: 'insufficient_permission' });
    expect(ask(silent, keyWith(['*'], { models: ['x'] }), strict)).toMatchObject({ code: 'resource_not_permitted' });
    const long = chat('{"stream":true,"max_tokens":101}');
    expect(ask(long, keyWith(['*']), strict)).toMatchObject({ code: 'max_tokens_exceeded' });
  });
});

describe('a collection in the path of a route that reads the body', () => {
  const answer = (collection: 'path' | 'body' | undefined, body: object, constraints: ResourceConstraints) => {
    const spec = { method: 'POST', path: '/kb/{collection}/ask', permission: 'kb:ask', model: 'body' } as const;
    const parsed = parseRoute(collection === undefined ? spec : { ...spec, collection });
    if (parsed.kind === 'error') throw new Error(parsed.message);
    const own = buildRouteTable([parsed.route]);
    if (own.kind === 'error') throw new Error(own.message);
    const view = compileTenant(record());
    const snapshot = { own: view, effective: view, global: compilePolicies([]), builtinRoles };
    const input = checkInput({
      method: 'POST',
      path: '/kb/hr/ask',
      contentType: 'application/json',
      body: new TextEncoder().encode(JSON.stringify({ model: 'm', ...body })),
    });
    return told(decide(matchRoute(own.table, input), input, keyWith(['kb:*'], constraints), snapshot, NOW));
  };

  test.each(['path', 'body'] as const)('counts together with those of the body, for the source %s', (source) => {
    const hr = { collections: ['hr'] };
    expect(answer(source, {}, hr)).toBe('allow');
    expect(answer(source, { collection: 'hr', collections: ['hr'] }, hr)).toBe('allow');
    expect(answer(source, { collection: 'finance' }, hr)).toBe('resource_not_permitted');
    expect(answer(source, { collections: ['hr', 'finance'] }, hr)).toBe('resource_not_permitted');
    expect(answer(source, { collections: ['finance'] }, { collections: ['finance'] })).toBe('resource_not_permitted');
    expect(answer(source, { collections: ['finance'] }, { collections: ['hr', 'finance'] })).toBe('allow');
  });

  test('is none of the request, like those of the body, if the route takes no collection', () => {
    expect(answer(undefined, { collections: ['finance'] }, { collections: [] })).toBe('allow');
  });
});

describe('a denial', () => {
  test('for a missing permission names it, the first of two', () => {
    const denied = ask(
      { method: 'POST', path: '/v1/rag/query', body: new TextEncoder().encode('{}') },
      keyWith(['chat:*']),
    );
    expect(denied).toMatchObject({ code: 'insufficient_permission', permission: 'rag:query' });
  });

  test('checks the credential before the tenant, and the tenant before the body', () => {
    const broken = { ...chat('{'), tenant: 'NO' };
    expect(ask(broken, { kind: 'missing' })).toMatchObject({ code: 'missing_credential' });
    expect(ask(broken, keyWith(['*']))).toMatchObject({ code: 'invalid_tenant' });
    expect(ask({ ...broken, tenant: undefined }, keyWith([]))).toMatchObject({ code: 'malformed_body' });
    expect(ask({ ...broken, tenant: undefined }, keyWith(['*']), record({ status: 'suspended' }))).toMatchObject({
      code: 'tenant_suspended',
    });
  });

  test('a body that is cut is body_too_large, one that is not JSON malformed_body', () => {
    expect(ask({ ...chat('{'), bodyPartial: true }, keyWith(['*']))).toMatchObject({ code: 'body_too_large' });
    expect(ask({ ...chat('{}'), contentType: 'text/plain' }, keyWith(['*']))).toMatchObject({ code: 'malformed_body' });
  });

  test('a body that Envoy did not send is a fault of its route at step 11, after the tenant and before every policy', () => {
    const missing = { ...chat(''), bodyMissing: true };
    expect(ask(missing, keyWith(['*']))).toMatchObject({
      kind: 'fault',
      cause: 'body_not_sent',
      tenant: 'home',
      route: { method: 'POST', template: '/v1/chat/completions' },
    });
    expect(ask(missing, keyWith([]))).toMatchObject({ kind: 'fault' });
    expect(ask(missing, keyWith(['*']), record({ status: 'suspended' }))).toMatchObject({ code: 'tenant_suspended' });
    const unread = { method: 'POST', path: '/v1/agents', bodyMissing: true };
    expect(ask(unread, keyWith(['*']))).toMatchObject({ kind: 'allow' });
  });

  test('a body is not read if the route uses nothing of it', () => {
    expect(
      ask({ method: 'POST', path: '/v1/agents', body: Uint8Array.of(0xff), bodyPartial: true }, keyWith(['*'])),
    ).toMatchObject({ kind: 'allow' });
  });

  describe('of a request that needs too much work to compare with the rules', () => {
    const globs = (prefix: string) => Array.from({ length: 200 }, (_, i) => `${prefix}*${'aaaab*'.repeat(7)}${i}`);
    const collections = Array.from({ length: 64 }, (_, i) => `${'aaaa'.repeat(120)}aaaab-${i}-`);
    const asked = { ...chat(JSON.stringify({ collections })), path: '/v1/rag/query' };
    const policy = (name: string, effect: 'allow' | 'deny'): PolicyRecord => ({
      name: must(parsePolicyName(name), name),
      effect,
      actions: ['*'],
      resources: globs('collections/'),
      conditions: {},
      appliesTo: 'everyone',
      attachedRoles: [],
      enabled: true,
    });
    const policies = (effect: 'allow' | 'deny') => Array.from({ length: 30 }, (_, i) => policy(`p${i}`, effect));
    const TOO_MUCH = { kind: 'deny', code: 'resource_not_permitted', detail: expect.stringContaining('Name fewer') };

    test('is no denial if only report-only policies need the work: they have a limit of their own', () => {
      const reporting = policies('deny').map((one) => ({ ...one, enabled: false, reports: true }));
      const decision = ask(asked, keyWith(['*']), record({ policies: reporting }));
      expect(decision).toMatchObject({ kind: 'allow' });
      expect(reportOf(decision)).toBeUndefined();
    });

    test('is a denial, for remaining deny policies, grants and allow policies', () => {
      expect(ask(asked, keyWith(['*']))).toMatchObject({ kind: 'allow' });
      expect(ask(asked, keyWith(['*']), record({ policies: policies('deny') }))).toMatchObject(TOO_MUCH);
      // Each allow reaches all collections except the last one.
      const wide = policies('allow').map((one) => ({
        ...one,
        resources: [...one.resources.slice(1), 'collections/a*-'],
      }));
      const allowed = record({ policies: wide });
      const beyond = {
        ...chat(JSON.stringify({ collections: [...collections.slice(1), 'z'] })),
        path: '/v1/rag/query',
      };
      expect(ask(beyond, { kind: 'proved', principal: userWith(['gone']) }, allowed)).toMatchObject(TOO_MUCH);
    });

    test('does not occur for fewer collections, or if a deny is found earlier', () => {
      const few = { ...chat(JSON.stringify({ collections: collections.slice(0, 3) })), path: '/v1/rag/query' };
      expect(ask(few, keyWith(['*']), record({ policies: policies('deny').slice(0, 5) }))).toMatchObject({
        kind: 'allow',
      });
      const first = { ...policy('a', 'deny'), resources: ['collections/aaaa*'] };
      const found = ask(asked, keyWith(['*']), record({ policies: [first, ...policies('deny')] }));
      expect(found).toMatchObject({ code: 'denied_by_policy', policy: 'a' });
    });

    test('does not occur for a key at all of its bounds: the decision completes', () => {
      const covering = [...globs('').slice(0, 199), 'aaaa*-'];
      const identity = keyWith(['*'], { collections: covering });
      expect(ask(asked, identity)).toMatchObject({ kind: 'allow' });
      expect(ask(asked, keyWith(['*'], { collections: globs('') }))).toMatchObject({
        code: 'resource_not_permitted',
        detail: expect.not.stringContaining('Name fewer'),
      });
    });
  });

  test('every invalid credential gets the same answer', () => {
    const answers = (['unknown', 'revoked', 'user_deactivated', 'malformed'] as const).map((reason) => {
      const denied = ask(chat('{}'), { kind: 'invalid', reason });
      return denied.kind === 'deny' ? [denied.code, denied.detail] : [];
    });
    expect(new Set(answers.map(String)).size).toBe(1);
  });

  test('a valid credential without a snapshot is denied', () => {
    const input = checkInput(chat('{}'));
    expect(decide(matchRoute(table, input), input, keyWith(['*']), undefined, NOW)).toMatchObject({ kind: 'deny' });
  });

  test('no name that the request brings is repeated at length', () => {
    const denied = ask(chat(`{"model":"${'m'.repeat(512)}"}`), {
      kind: 'proved',
      principal: {
        kind: 'api_key',
        id: makeId('key', 0, new Uint8Array(10)),
        tenantId: HOME,
        grant: compileGrant(['*'], { models: ['x'] }),
        owner: undefined,
        rateLimitRpm: undefined,
      },
    });
    expect(denied.kind === 'deny' && denied.detail.length).toBeLessThan(300);
  });
});
