/** The question as the address has it, and as the API takes it. */

import type { ExplainRequest } from '../../../../client/index.ts';
import type { ExplainSearch } from './search.ts';

export const METHODS = ['POST', 'GET', 'PUT', 'PATCH', 'DELETE'] as const;

/** The most common paths. Other paths can be typed. */
export const PATHS = [
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/responses',
  '/v1/responses/compact',
  '/v1/responses/input_tokens',
  '/v1/messages',
  '/v1/messages/count_tokens',
  '/v1/embeddings',
  '/v1/models',
  '/v1/rag/query',
  '/v1/rag/search',
  '/v1/rag/collections',
  '/v1/agents',
  '/v1/files',
  '/v1/batches',
  '/v1/images/generations',
  '/v1/audio/speech',
  '/v1/moderations',
  '/v1/rerank',
] as const;

/** Paths whose body the decision reads, so that the request needs one. */
const READ_BODIES: readonly string[] = [
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/responses',
  '/v1/responses/compact',
  '/v1/responses/input_tokens',
  '/v1/messages',
  '/v1/messages/count_tokens',
  '/v1/embeddings',
  '/v1/rag/query',
  '/v1/rag/search',
  '/v1/images/generations',
  '/v1/audio/speech',
  '/v1/moderations',
  '/v1/rerank',
];

/** The values of the form. `subject` is undefined until a principal is chosen. */
export interface Draft {
  readonly kind: 'user' | 'key';
  readonly subject: string | undefined;
  readonly method: string;
  readonly path: string;
  readonly model: string;
  readonly address: string;
  /** As `datetime-local` has it, in the viewer's zone; empty = now. */
  readonly when: string;
}

export function draftOf(search: ExplainSearch): Draft {
  return {
    kind: search.key === undefined ? 'user' : 'key',
    subject: search.key ?? search.user,
    method: search.method ?? 'POST',
    path: search.path ?? '/v1/chat/completions',
    model: search.model ?? '',
    address: search.address ?? '',
    when: search.time === undefined ? '' : localOf(search.time),
  };
}

export function searchOf({ kind, subject, method, path, model, address, when }: Draft): ExplainSearch {
  return {
    user: kind === 'user' ? subject : undefined,
    key: kind === 'key' ? subject : undefined,
    method,
    path: path.trim(),
    model: orNone(model.trim()),
    body: undefined,
    address: orNone(address.trim()),
    time: instantOf(when),
  };
}

/** Undefined while the address does not hold a whole question. */
export function requestOf({
  user,
  key,
  method = 'POST',
  path,
  model = '',
  body = bodyOf(method, path, model),
  address,
  time,
}: ExplainSearch): ExplainRequest | undefined {
  const subject = key ?? user;
  if (subject === undefined || path === undefined) return undefined;
  return {
    subject,
    method,
    path,
    ...(body === undefined ? {} : { body }),
    ...(address === undefined ? {} : { client_ip: address }),
    ...(time === undefined ? {} : { time }),
  };
}

function bodyOf(method: string, path: string | undefined, model: string): string | undefined {
  if (method === 'GET' || method === 'DELETE') return undefined;
  if (model !== '') return JSON.stringify({ model });
  return method === 'POST' && path !== undefined && READ_BODIES.includes(path) ? '{}' : undefined;
}

function orNone(text: string): string | undefined {
  return text === '' ? undefined : text;
}

/** `2026-11-19T23:30` on the viewer's clock, of an RFC 3339 time; empty for what is none. */
export function localOf(instant: string): string {
  const at = new Date(instant);
  if (Number.isNaN(at.getTime())) return '';
  const shifted = new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 16);
}

function instantOf(local: string): string | undefined {
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}
