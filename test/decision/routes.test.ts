import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { REPEATED, type Route } from '../../src/decision/model.ts';
import {
  BUILTIN_ROUTES,
  buildRouteTable,
  matchRoute,
  parseRoute,
  type RouteMatch,
  type RouteSpec,
  type RouteTable,
} from '../../src/decision/routes.ts';
import { runs } from '../support/properties.ts';
import { checkInput } from '../support/world.ts';

function line(spec: Partial<RouteSpec> & { path: string }): Route {
  const parsed = parseRoute({ method: 'GET', permission: 'x:read', ...spec });
  if (parsed.kind === 'error') throw new Error(parsed.message);
  return parsed.route;
}

function tableOf(...extra: Route[]): RouteTable {
  const built = buildRouteTable(extra);
  if (built.kind === 'error') throw new Error(built.message);
  return built.table;
}

const builtin = tableOf();

function ask(table: RouteTable, request: string, upgrade?: string): RouteMatch {
  const [method = '', path = ''] = request.split(' ');
  return matchRoute(table, { ...checkInput({ method, path }), upgrade });
}

/** `METHOD template -> permission [resources]`, or the code. */
function told(match: RouteMatch): string {
  if (match.kind === 'denied') return match.code;
  if (match.kind === 'public') return 'public';
  const resources = match.resources.map((one) => `${one.kind}/${one.name}`).join(' ');
  return `${match.route.template} ${match.route.permissions.map((one) => one.text).join('|')} ${resources}`.trim();
}

describe('the built-in routes', () => {
  test.each([
    ['POST /v1/chat/completions', '/v1/chat/completions chat:write'],
    ['POST /v1/completions', '/v1/completions chat:write'],
    ['POST /v1/responses', '/v1/responses chat:write'],
    ['GET /v1/chat', '/v1/chat/** chat:read'],
    ['GET /v1/chat/completions/c1/messages', '/v1/chat/** chat:read'],
    ['DELETE /v1/chat/completions/c1', '/v1/chat/** chat:write'],
    ['PATCH /v1/chat/completions/c1', '/v1/chat/** chat:write'],
    ['PUT /v1/chat/completions', 'no_route'],
    ['POST /v1/chat/other', 'no_route'],
    ['POST /v1/embeddings', '/v1/embeddings embeddings:write'],
    ['GET /v1/models', '/v1/models models:read'],
    ['GET /v1/models/meta-llama/Llama-3', '/v1/models/{model+} models:read models/meta-llama/Llama-3'],
    ['POST /v1/models', '/v1/models models:write'],
    ['POST /v1/models/m', '/v1/models/{model+} models:write models/m'],
    ['PUT /v1/models/m', '/v1/models/{model+} models:write models/m'],
    ['PUT /v1/models', 'no_route'],
    ['GET /v1/rag/collections', '/v1/rag/collections rag:read'],
    ['GET /v1/rag/collections/hr', '/v1/rag/collections/{collection}/** rag:read collections/hr'],
    ['GET /v1/rag/collections/h%C3%A9/docs/1', '/v1/rag/collections/{collection}/** rag:read collections/hé'],
    ['POST /v1/rag/query', '/v1/rag/query rag:query|rag:read'],
    ['POST /v1/rag/search', '/v1/rag/search rag:query|rag:read'],
    ['POST /v1/rag/collections/hr/query', '/v1/rag/collections/{collection}/query rag:query|rag:read collections/hr'],
    [
      'POST /v1/rag/collections/hr/search/',
      '/v1/rag/collections/{collection}/search rag:query|rag:read collections/hr',
    ],
    ['POST /v1/rag/collections/hr/query/x', '/v1/rag/collections/{collection}/** rag:write collections/hr'],
    ['POST /v1/rag/collections', '/v1/rag/collections rag:write'],
    ['DELETE /v1/rag/collections/hr', '/v1/rag/collections/{collection} rag:write collections/hr'],
    ['DELETE /v1/rag/collections/hr/documents/1', '/v1/rag/collections/{collection}/** rag:write collections/hr'],
    ['PUT /v1/rag/collections/hr', '/v1/rag/collections/{collection}/** rag:write collections/hr'],
    ['GET /v1/agents', '/v1/agents agents:read'],
    ['GET /v1/agents/a1/files', '/v1/agents/{agent}/** agents:read agents/a1'],
    ['POST /v1/agents/a1/runs', '/v1/agents/{agent}/runs/** agents:run agents/a1'],
    ['POST /v1/agents/a1/runs/r1/cancel', '/v1/agents/{agent}/runs/** agents:run agents/a1'],
    ['POST /v1/agents', '/v1/agents agents:write'],
    ['POST /v1/agents/a1', '/v1/agents/{agent}/** agents:write agents/a1'],
    ['PATCH /v1/agents/a1/runs', '/v1/agents/{agent}/** agents:write agents/a1'],
    ['GET /v1/finetuning/jobs/j', '/v1/finetuning/** finetuning:read'],
    ['POST /v1/finetuning/jobs', '/v1/finetuning/jobs finetuning:write'],
    ['POST /v1/fine_tuning/jobs/j/cancel', '/v1/fine_tuning/** finetuning:write'],
    ['DELETE /v1/fine_tuning/jobs/j', '/v1/fine_tuning/** finetuning:write'],
    ['PUT /v1/finetuning/jobs', 'no_route'],
    ['POST /v1/messages', '/v1/messages chat:write'],
    ['GET /v1/responses/resp_1', '/v1/responses/{id}/** chat:read'],
    ['GET /v1/responses/resp_1/input_items', '/v1/responses/{id}/** chat:read'],
    ['POST /v1/responses/resp_1/cancel', '/v1/responses/{id}/** chat:write'],
    ['POST /v1/responses/compact', '/v1/responses/compact chat:write'],
    ['POST /v1/responses/compact/x', '/v1/responses/{id}/** chat:write'],
    ['GET /v1/responses/compact', '/v1/responses/{id}/** chat:read'],
    ['POST /v1/responses/input_tokens', '/v1/responses/input_tokens chat:write'],
    ['DELETE /v1/responses/resp_1', '/v1/responses/{id}/** chat:write'],
    ['GET /v1/responses', 'no_route'],
    ['POST /v1/images/generations', '/v1/images/generations images:write'],
    ['POST /v1/images/edits', '/v1/images/edits images:write'],
    ['POST /v1/images/variations', '/v1/images/variations images:write'],
    ['GET /v1/images', 'no_route'],
    ['POST /v1/audio/speech', '/v1/audio/speech audio:write'],
    ['POST /v1/audio/transcriptions', '/v1/audio/transcriptions audio:write'],
    ['POST /v1/audio/translations', '/v1/audio/translations audio:write'],
    ['GET /v1/files', '/v1/files/** files:read'],
    ['GET /v1/files/f/content', '/v1/files/** files:read'],
    ['POST /v1/files', '/v1/files/** files:write'],
    ['DELETE /v1/files/f', '/v1/files/** files:write'],
    ['GET /v1/batches/b', '/v1/batches/** batches:read'],
    ['POST /v1/batches', '/v1/batches/** batches:write'],
    ['POST /v1/batches/b/cancel', '/v1/batches/** batches:write'],
    ['DELETE /v1/batches/b', 'no_route'],
    ['POST /v1/messages/count_tokens', '/v1/messages/count_tokens chat:read'],
    ['GET /v1/messages/count_tokens', 'no_route'],
    ['GET /v1/messages/batches', '/v1/messages/batches/** batches:read'],
    ['GET /v1/messages/batches/b/results', '/v1/messages/batches/** batches:read'],
    ['POST /v1/messages/batches', '/v1/messages/batches/** batches:write'],
    ['POST /v1/messages/batches/b/cancel', '/v1/messages/batches/** batches:write'],
    ['DELETE /v1/messages/batches/b', '/v1/messages/batches/** batches:write'],
    ['GET /v1/messages', 'no_route'],
    ['POST /v1/moderations', '/v1/moderations moderations:write'],
    ['POST /v1/rerank', '/v1/rerank rerank:write'],
    ['GET /v1/unknown', 'no_route'],
    ['GET /', 'no_route'],
    ['post /v1/embeddings', 'no_route'],
    ['POST /v1/Embeddings', 'no_route'],
  ])('%s -> %s', (request, expected) => {
    expect(told(ask(builtin, request))).toBe(expected);
  });

  test('have the metering, bodies and collections of the table', () => {
    const facts = (method: string, template: string) => {
      const found = BUILTIN_ROUTES.find((one) => one.method === method && one.template === template);
      return found && [found.tokens, found.readsBody, found.model, found.collection, found.counts];
    };
    expect(facts('POST', '/v1/responses')).toEqual([true, true, 'body', 'none', 'none']);
    expect(facts('POST', '/v1/responses/compact')).toEqual([true, true, 'body', 'none', 'none']);
    expect(facts('POST', '/v1/responses/input_tokens')).toEqual([false, true, 'body', 'none', 'none']);
    expect(facts('POST', '/v1/embeddings')).toEqual([true, true, 'body', 'none', 'none']);
    expect(facts('POST', '/v1/rag/search')).toEqual([false, true, 'none', 'body', 'none']);
    expect(facts('POST', '/v1/finetuning/jobs')).toEqual([false, true, 'body', 'none', 'none']);
    expect(facts('POST', '/v1/fine_tuning/**')).toEqual([false, false, 'none', 'none', 'none']);
    expect(facts('POST', '/v1/images/generations')).toEqual([false, true, 'body', 'none', 'none']);
    expect(facts('POST', '/v1/audio/transcriptions')).toEqual([false, false, 'unknown', 'none', 'none']);
    expect(facts('POST', '/v1/rag/collections')).toEqual([false, false, 'none', 'none', 'adds-collection']);
    expect(facts('DELETE', '/v1/rag/collections/{collection}')).toEqual([
      false,
      false,
      'none',
      'path',
      'removes-collection',
    ]);
  });
});

describe('public paths', () => {
  test.each([
    'POST /v1/auth/login',
    'GET /v1/auth',
    'DELETE /v1/iam/users/u1',
    'GET /console',
    'GET /console/app.js',
    'GET /docs',
    'HEAD /docs/x/y',
    'GET /openapi.json?x=1',
    'GET /.well-known/jwks.json',
    'GET /.well-known/openid-configuration',
  ])('%s is public', (request) => {
    expect(told(ask(builtin, request))).toBe('public');
  });

  test.each([
    'GET /openapi.json/x',
    'GET /.well-known',
    'GET /.well-known/other',
    'GET /.well-known/openid-configuration/x',
    'GET /v1',
    'GET /v1/authx',
    'GET /Console',
    'GET /x/v1/auth',
  ])('%s is not', (request) => {
    expect(told(ask(builtin, request))).toBe('no_route');
  });

  test('a CORS preflight is no route, on public paths too', () => {
    expect(told(ask(builtin, 'OPTIONS /v1/auth/login'))).toBe('no_route');
    expect(told(ask(builtin, 'OPTIONS /v1/models'))).toBe('no_route');
  });

  test('no configured route makes a path public, or applies below a public path', () => {
    const table = tableOf(
      line({ path: '/v1/auth/login' }),
      line({ path: '/**' }),
      line({ path: '/console/**', method: 'OPTIONS' }),
    );
    expect(told(ask(table, 'GET /v1/auth/login'))).toBe('public');
    expect(told(ask(table, 'GET /console/x'))).toBe('public');
    expect(told(ask(table, 'OPTIONS /console/x'))).toBe('no_route');
    expect(told(ask(table, 'GET /elsewhere'))).toBe('/** x:read');
  });

  test('a name in the path takes at most 512 bytes', () => {
    const matched = (name: string) =>
      matchRoute(builtin, { method: 'GET', path: `/v1/models/${encodeURIComponent(name)}`, upgrade: undefined });
    expect(matched('x'.repeat(512))).toMatchObject({ kind: 'matched' });
    expect(matched('é'.repeat(256))).toMatchObject({ kind: 'matched' });
    for (const name of ['x'.repeat(513), 'é'.repeat(257)])
      expect(matched(name)).toMatchObject({ code: 'malformed_path' });
  });

  test('malformed comes before public', () => {
    expect(told(ask(builtin, 'GET /v1/auth/../models'))).toBe('malformed_path');
  });
});

describe('methods and upgrades', () => {
  test('HEAD is GET', () => {
    expect(told(ask(builtin, 'HEAD /v1/models'))).toBe('/v1/models models:read');
    expect(told(ask(builtin, 'HEAD /v1/embeddings'))).toBe('no_route');
  });

  test('OPTIONS is a route if one is configured', () => {
    expect(told(ask(tableOf(line({ path: '/x', method: 'OPTIONS' })), 'OPTIONS /x'))).toBe('/x x:read');
  });

  test.each(['websocket', '', 'h2c'])(
    'a request with upgrade %j is no route unless the route permits upgrades',
    (upgrade) => {
      const table = tableOf(line({ path: '/live', upgrade: true }), line({ path: '/live/{x}', upgrade: true }));
      expect(told(ask(builtin, 'GET /v1/models', upgrade))).toBe('no_route');
      expect(told(ask(builtin, 'GET /v1/models/m', upgrade))).toBe('no_route');
      expect(told(ask(builtin, 'GET /v1/auth/me', upgrade))).toBe('no_route');
      expect(told(ask(table, 'GET /live', upgrade))).toBe('/live x:read');
      expect(told(ask(table, 'GET /live/1', upgrade))).toBe('/live/{x} x:read');
    },
  );

  test('a repeated upgrade header is an upgrade', () => {
    expect(matchRoute(builtin, { method: 'GET', path: '/v1/models', upgrade: REPEATED }).kind).toBe('denied');
  });
});

describe('configured routes', () => {
  test('a configured route replaces the built-in one of the same method and path', () => {
    const table = tableOf(line({ method: 'POST', path: '/v1/embeddings/', permission: 'vectors:write' }));
    expect(told(ask(table, 'POST /v1/embeddings'))).toBe('/v1/embeddings vectors:write');
  });

  test.each([
    ['/v1/models/{other+}', '/v1/models/{model+}'],
    ['/v1/agents/{id}/**', '/v1/agents/{agent}/**'],
  ])('%s is as specific as %s, and the error names both', (path, there) => {
    const built = buildRouteTable([line({ path })]);
    expect(built.kind === 'error' && built.message).toContain(`GET ${path}`);
    expect(built.kind === 'error' && built.message).toContain(`GET ${there}`);
  });

  test('the same route twice is an error', () => {
    expect(buildRouteTable([line({ path: '/x' }), line({ path: '/x' })]).kind).toBe('error');
  });

  test.each([
    [{ path: 'x' }, 'start with a slash'],
    [{ path: '/a//b' }, 'segment ""'],
    [{ path: '/a/**/b' }, 'last segment'],
    [{ path: '/a/{b+}/**' }, 'both {name+} and **'],
    [{ path: '/{a+}/{b+}' }, 'both {name+} and **'],
    [{ path: '/{a}/{a}' }, 'twice'],
    [{ path: '/a*b' }, 'must be a literal'],
    [{ path: '/a%20b' }, 'must be a literal'],
    [{ path: '/../b' }, 'must be a literal'],
    [{ path: '/{A}' }, 'must be a literal'],
    [{ path: '/x', method: 'get' }, 'method'],
    [{ path: '/x', method: 'HEAD' }, 'HEAD'],
    [{ path: '/x', permission: 'chat:*' }, 'permission'],
    [{ path: '/x', permission: [] }, 'permission'],
    [{ path: '/x', permission: ['a:b', 'c:d', 'e:f'] }, 'permission'],
    [{ path: '/x', model: 'path' }, '{model}'],
    [{ path: '/{model}', collection: 'path' }, '{collection}'],
  ] as const)('%j is refused', (spec, reason) => {
    const parsed = parseRoute({ method: 'GET', permission: 'x:read', ...spec });
    expect(parsed.kind === 'error' && parsed.message).toContain(reason);
  });

  test('a resource of the path counts on a route that also reads the body', () => {
    const table = tableOf(line({ method: 'POST', path: '/{collection}/ask', collection: 'body' }));
    expect(told(ask(table, 'POST /hr/ask'))).toBe('/{collection}/ask x:read collections/hr');
  });

  test('a wide variable may stand before literals', () => {
    const table = tableOf(
      line({ path: '/m/{model+}/versions/{v}', model: 'path' }),
      line({ path: '/m/{model+}', model: 'path' }),
    );
    expect(told(ask(table, 'GET /m/a/b/versions/1'))).toBe('/m/{model+}/versions/{v} x:read models/a/b');
    expect(told(ask(table, 'GET /m/a/versions'))).toBe('/m/{model+} x:read models/a/versions');
  });
});

/**
 * How a template takes each segment of a path, or undefined: `l` literal, `o` one, `p` more, `r` rest; then `e` where
 * its end is.
 */
function takes(parts: readonly string[], segments: readonly string[]): string[] {
  const [part, ...others] = parts;
  if (part === undefined) return segments.length === 0 ? ['e'] : [];
  if (part === '**') return [`${'r'.repeat(segments.length)}s`];
  const [segment, ...rest] = segments;
  if (segment === undefined) return [];
  if (part.endsWith('+}')) {
    return Array.from({ length: segments.length }, (_, i) =>
      takes(others, segments.slice(i + 1)).map((tail) => 'p'.repeat(i + 1) + tail),
    ).flat();
  }
  if (part.startsWith('{')) return takes(others, rest).map((tail) => `o${tail}`);
  return part === segment ? takes(others, rest).map((tail) => `l${tail}`) : [];
}

const RANK = 'loprse';

/** Left to right the lower rank wins; `e` (the end) beats `s` (a rest of nothing). */
function better(left: string, right: string): boolean {
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const [a, b] = [left[i] ?? '', right[i] ?? ''];
    if (a === b) continue;
    if (a === 'e' || b === 'e') return a === 'e';
    return RANK.indexOf(a) < RANK.indexOf(b);
  }
  return false;
}

const middle = fc.constantFrom('a', 'b', '{x}', '{y+}');
const template = fc
  .tuple(fc.array(middle, { maxLength: 4 }), fc.boolean())
  .filter(([parts, rest]) => parts.filter((one) => one === '{y+}').length + (rest ? 1 : 0) <= 1)
  .filter(([parts]) => parts.filter((one) => one === '{x}').length <= 1)
  .map(([parts, rest]) => `/${[...parts, ...(rest ? ['**'] : [])].join('/')}`);

describe('the most specific template', () => {
  test('is the same as in a comparison with every template, segment by segment', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(template, { maxLength: 8 }),
        fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 5 }),
        (templates, segments) => {
          const table = tableOf(...templates.map((path) => line({ path })));
          let best: { text: string; way: string } | undefined;
          for (const text of templates) {
            const parts = text === '/' ? [] : text.slice(1).split('/');
            for (const way of takes(parts, segments))
              if (best === undefined || better(way, best.way)) best = { text, way };
          }
          const match = matchRoute(table, { method: 'GET', path: `/${segments.join('/')}`, upgrade: undefined });
          expect(match.kind === 'matched' ? match.route.template : undefined).toBe(best?.text);
        },
      ),
      { numRuns: runs(3000) },
    );
  });
});
