/** A first request that a key may send. */

import type { ResourceConstraints } from '../../../../client/index.ts';
import { coversAny } from '../../api/permissions.ts';

export interface Sample {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: object;
}

interface KeyLike {
  readonly scopes: readonly string[];
  readonly resource_constraints: ResourceConstraints;
}

/** The placeholder for a model whose name is not known. */
export const SOME_MODEL = 'your-model';

export function chatSample(model: string): Sample {
  return {
    method: 'POST',
    path: '/v1/chat/completions',
    body: { model, messages: [{ role: 'user', content: 'Hello' }] },
  };
}

/** The first model that the key's constraints name in full; undefined if they name patterns only. */
export function modelOf({ models }: ResourceConstraints): string | undefined {
  return models?.find((model) => !model.includes('*'));
}

/** @param model default: one that the key names; if it names none, a request without a model goes first */
export function sampleOf({ scopes, resource_constraints: constraints }: KeyLike, model = modelOf(constraints)): Sample {
  const named = model ?? SOME_MODEL;
  const list: readonly [string, Sample] = ['models:read', { method: 'GET', path: '/v1/models' }];
  const samples: readonly (readonly [string, Sample])[] = [
    ...(model === undefined ? [list] : []),
    ['chat:write', chatSample(named)],
    ['embeddings:write', { method: 'POST', path: '/v1/embeddings', body: { model: named, input: 'Hello' } }],
    list,
    ['rag:read', { method: 'GET', path: '/v1/rag/collections' }],
    ['agents:read', { method: 'GET', path: '/v1/agents' }],
  ];
  const found = samples.find(([permission]) => coversAny(scopes, permission));
  // Every valid credential may ask this.
  return found?.[1] ?? { method: 'GET', path: '/v1/auth/me' };
}
