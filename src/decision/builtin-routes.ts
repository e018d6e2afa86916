/** The routes of an AI platform, known without any configuration. */

import type { Route } from './model.ts';
import { parseRoute, type RouteSpec } from './route-spec.ts';

interface BuiltinSpec extends Omit<RouteSpec, 'method' | 'path'> {
  readonly methods: readonly string[];
  readonly paths: readonly string[];
  readonly counts?: Route['counts'];
  readonly reportsUsage?: true;
}

const SPECS: readonly BuiltinSpec[] = [
  {
    methods: ['POST'],
    paths: ['/v1/chat/completions', '/v1/completions', '/v1/responses', '/v1/responses/compact', '/v1/messages'],
    permission: 'chat:write',
    model: 'body',
    tokens: true,
  },
  { methods: ['GET'], paths: ['/v1/chat/**', '/v1/responses/{id}/**'], permission: 'chat:read' },
  { methods: ['DELETE', 'PATCH'], paths: ['/v1/chat/**'], permission: 'chat:write' },
  { methods: ['DELETE', 'POST'], paths: ['/v1/responses/{id}/**'], permission: 'chat:write' },
  { methods: ['POST'], paths: ['/v1/responses/input_tokens'], permission: 'chat:write', model: 'body' },
  { methods: ['POST'], paths: ['/v1/embeddings'], permission: 'embeddings:write', model: 'body', tokens: true },
  { methods: ['GET'], paths: ['/v1/models'], permission: 'models:read' },
  { methods: ['GET'], paths: ['/v1/models/{model+}'], permission: 'models:read', model: 'path' },
  { methods: ['POST'], paths: ['/v1/models'], permission: 'models:write' },
  {
    methods: ['POST', 'PUT', 'PATCH', 'DELETE'],
    paths: ['/v1/models/{model+}'],
    permission: 'models:write',
    model: 'path',
  },
  { methods: ['GET'], paths: ['/v1/rag/collections'], permission: 'rag:read' },
  { methods: ['GET'], paths: ['/v1/rag/collections/{collection}/**'], permission: 'rag:read', collection: 'path' },
  {
    methods: ['POST'],
    paths: ['/v1/rag/query', '/v1/rag/search'],
    permission: ['rag:query', 'rag:read'],
    collection: 'body',
  },
  {
    methods: ['POST'],
    paths: ['/v1/rag/collections/{collection}/query', '/v1/rag/collections/{collection}/search'],
    permission: ['rag:query', 'rag:read'],
    collection: 'path',
  },
  { methods: ['POST'], paths: ['/v1/rag/collections'], permission: 'rag:write', counts: 'adds-collection' },
  {
    methods: ['DELETE'],
    paths: ['/v1/rag/collections/{collection}'],
    permission: 'rag:write',
    collection: 'path',
    counts: 'removes-collection',
  },
  {
    methods: ['POST', 'PUT', 'PATCH', 'DELETE'],
    paths: ['/v1/rag/collections/{collection}/**'],
    permission: 'rag:write',
    collection: 'path',
  },
  { methods: ['GET'], paths: ['/v1/agents', '/v1/agents/{agent}/**'], permission: 'agents:read' },
  { methods: ['POST'], paths: ['/v1/agents/{agent}/runs/**'], permission: 'agents:run' },
  { methods: ['POST'], paths: ['/v1/agents'], permission: 'agents:write' },
  { methods: ['POST', 'PUT', 'PATCH', 'DELETE'], paths: ['/v1/agents/{agent}/**'], permission: 'agents:write' },
  { methods: ['GET'], paths: ['/v1/finetuning/**', '/v1/fine_tuning/**'], permission: 'finetuning:read' },
  {
    methods: ['POST'],
    paths: ['/v1/finetuning/jobs', '/v1/fine_tuning/jobs'],
    permission: 'finetuning:write',
    model: 'body',
  },
  {
    methods: ['POST', 'PATCH', 'DELETE'],
    paths: ['/v1/finetuning/**', '/v1/fine_tuning/**'],
    permission: 'finetuning:write',
  },
  {
    methods: ['POST'],
    paths: ['/v1/images/generations'],
    permission: 'images:write',
    model: 'body',
    reportsUsage: true,
  },
  {
    methods: ['POST'],
    paths: ['/v1/images/edits', '/v1/images/variations'],
    permission: 'images:write',
    model: 'unknown',
    reportsUsage: true,
  },
  { methods: ['POST'], paths: ['/v1/audio/speech'], permission: 'audio:write', model: 'body', reportsUsage: true },
  {
    methods: ['POST'],
    paths: ['/v1/audio/transcriptions', '/v1/audio/translations'],
    permission: 'audio:write',
    model: 'unknown',
    reportsUsage: true,
  },
  { methods: ['GET'], paths: ['/v1/files/**'], permission: 'files:read' },
  { methods: ['POST', 'DELETE'], paths: ['/v1/files/**'], permission: 'files:write' },
  { methods: ['GET'], paths: ['/v1/batches/**'], permission: 'batches:read' },
  { methods: ['POST'], paths: ['/v1/batches/**'], permission: 'batches:write' },
  { methods: ['POST'], paths: ['/v1/messages/count_tokens'], permission: 'chat:read', model: 'body' },
  { methods: ['GET'], paths: ['/v1/messages/batches/**'], permission: 'batches:read' },
  { methods: ['POST', 'DELETE'], paths: ['/v1/messages/batches/**'], permission: 'batches:write' },
  { methods: ['POST'], paths: ['/v1/moderations'], permission: 'moderations:write', model: 'body' },
  { methods: ['POST'], paths: ['/v1/rerank'], permission: 'rerank:write', model: 'body', reportsUsage: true },
];

function expand(spec: BuiltinSpec): Route[] {
  const { methods, paths, counts, reportsUsage, ...rest } = spec;
  return methods.flatMap((method) =>
    paths.map((path) => {
      const parsed = parseRoute({ ...rest, method, path }, counts, reportsUsage);
      if (parsed.kind === 'error') throw new Error(parsed.message);
      return parsed.route;
    }),
  );
}

export const BUILTIN_ROUTES: readonly Route[] = Object.freeze(SPECS.flatMap(expand));
