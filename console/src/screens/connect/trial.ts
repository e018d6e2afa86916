/** The requests that the screen can send. */

import type { Trial } from '../../api/gateway.ts';

export const TRIALS = ['models', 'chat', 'messages', 'embeddings'] as const;
export type TrialKind = (typeof TRIALS)[number];

/** The largest answer that a trial asks for, in tokens. */
export const MAX_TOKENS = 16;

export function trialOf(kind: TrialKind, model: string): Trial {
  const messages = [{ role: 'user', content: 'Hello' }];
  const post = (path: string, body: object): Trial => ({
    method: 'POST',
    path,
    body: JSON.stringify({ model, ...body }),
    model,
  });
  switch (kind) {
    case 'models':
      return { method: 'GET', path: '/v1/models' };
    case 'chat':
      return post('/v1/chat/completions', { messages, max_tokens: MAX_TOKENS });
    case 'messages':
      return post('/v1/messages', { messages, max_tokens: MAX_TOKENS });
    case 'embeddings':
      return post('/v1/embeddings', { input: 'Hello' });
    default:
      return kind satisfies never;
  }
}
