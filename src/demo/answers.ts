/** The stand-in upstream's answers: one entry for each route of an AI platform, and a last one for every other path. */

import { DEMO_MODELS, generate, modelOf, promptOf, tokenUsage } from './generation.ts';
import type { Usage } from './ledger.ts';
import { type DemoRequest, isJsonObject } from './request.ts';
import { chatChunks, completionChunks, messageEvents, responseEvents } from './streams.ts';

export type DemoAnswer =
  | { readonly kind: 'json'; readonly body: Readonly<Record<string, unknown>>; readonly metered?: Metered }
  /** Server-sent events. The last one reports `metered`, if the request has usage. */
  | { readonly kind: 'events'; readonly events: readonly string[]; readonly metered?: Metered };

export interface Metered {
  readonly id: string;
  readonly model: string;
  readonly usage: Usage;
}

export interface Moment {
  readonly nowMs: number;
  readonly id: string;
}

type Handler = (request: DemoRequest, moment: Moment, name: string) => DemoAnswer;

/** Answers with the first entry whose pattern matches. The pattern's group is the resource's name. */
const LINES: readonly (readonly [method: string, pattern: RegExp, handler: Handler])[] = [
  ['POST', /^\/v1\/chat\/completions$/, chat],
  ['POST', /^\/v1\/completions$/, completion],
  ['POST', /^\/v1\/responses$/, response],
  ['POST', /^\/v1\/messages$/, message],
  ['POST', /^\/v1\/embeddings$/, embeddings],
  ['GET', /^\/v1\/models$/, (_request, moment) => list(DEMO_MODELS.map((id) => model(id, moment)))],
  ['GET', /^\/v1\/models\/(.+)$/, (_request, moment, name) => ({ kind: 'json', body: model(name, moment) })],
  ['GET', /^\/v1\/rag\/collections$/, () => list([{ id: 'handbook', object: 'collection' }])],
  ['POST', /^\/v1\/rag\/(?:collections\/([^/]+)\/)?(?:query|search)$/, search],
  [
    'GET',
    /^\/v1\/rag\/collections\/([^/]+)\/documents$/,
    () => list([{ id: 'doc_1', object: 'document', title: 'Welcome' }]),
  ],
  ['GET', /^\/v1\/agents$/, () => list([{ id: 'helper', object: 'agent' }])],
  [
    'POST',
    /^\/v1\/agents\/([^/]+)\/runs/,
    (_request, moment, name) => thing('agent.run', moment, { agent: name, status: 'completed' }),
  ],
  ['GET', /^\/v1\/(?:finetuning|fine_tuning)\/jobs$/, () => list([])],
  [
    'POST',
    /^\/v1\/(?:finetuning|fine_tuning)\/jobs$/,
    (request, moment) => thing('fine_tuning.job', moment, { model: modelOf(request), status: 'queued' }),
  ],
  [
    'DELETE',
    /([^/]+)$/,
    (_request, _moment, name) => ({ kind: 'json', body: { id: name, object: 'deleted', deleted: true } }),
  ],
];

export function answer(request: DemoRequest, moment: Moment): DemoAnswer {
  const method = request.method === 'HEAD' ? 'GET' : request.method;
  for (const [wanted, pattern, handler] of LINES) {
    const match = wanted === method ? pattern.exec(request.path) : null;
    if (match !== null) return handler(request, moment, decode(match[1] ?? ''));
  }
  return thing('demo', moment, { method: request.method, path: request.path });
}

function chat(request: DemoRequest, moment: Moment): DemoAnswer {
  return completed(request, moment, `chatcmpl-${moment.id}`, 'chat.completion', chatChunks, (content) => ({
    message: { role: 'assistant', content },
  }));
}

function completion(request: DemoRequest, moment: Moment): DemoAnswer {
  return completed(request, moment, `cmpl-${moment.id}`, 'text_completion', completionChunks, (text) => ({
    text,
    logprobs: null,
  }));
}

function completed(
  request: DemoRequest,
  moment: Moment,
  id: string,
  object: string,
  chunksOf: typeof chatChunks,
  choiceOf: (text: string) => object,
): DemoAnswer {
  const made = generate(request);
  const metered = { id, model: made.model, usage: made.usage };
  if (request.body['stream'] === true) {
    const reported = wantsUsage(request);
    return { kind: 'events', events: chunksOf(id, moment, made, reported), ...(reported ? { metered } : {}) };
  }
  const choices = made.choices.map((text, index) => ({ index, ...choiceOf(text), finish_reason: made.finish }));
  const body = { id, object, created: seconds(moment), model: made.model, choices, usage: made.usage };
  return { kind: 'json', body, metered };
}

function response(request: DemoRequest, moment: Moment): DemoAnswer {
  const id = `resp_${moment.id}`;
  const made = generate(request);
  const metered = { id, model: made.model, usage: made.usage };
  const usage = {
    input_tokens: made.usage.prompt_tokens,
    output_tokens: made.usage.completion_tokens,
    total_tokens: made.usage.total_tokens,
  };
  const content = [{ type: 'output_text', text: made.choices[0] ?? '', annotations: [] }];
  const output = [{ id: `msg_${moment.id}`, type: 'message', role: 'assistant', status: 'completed', content }];
  const body = {
    id,
    object: 'response',
    created_at: seconds(moment),
    status: 'completed',
    model: made.model,
    output,
    usage,
  };
  if (request.body['stream'] === true) return { kind: 'events', events: responseEvents(body, made), metered };
  return { kind: 'json', body, metered };
}

function message(request: DemoRequest, moment: Moment): DemoAnswer {
  const id = `msg_${moment.id}`;
  const made = generate(request);
  const metered = { id, model: made.model, usage: made.usage };
  const { prompt_tokens: input_tokens, completion_tokens: output_tokens } = made.usage;
  const head = { id, type: 'message', role: 'assistant', model: made.model };
  const stop_reason = made.finish === 'stop' ? 'end_turn' : 'max_tokens';
  const usage = { input_tokens, output_tokens };
  if (request.body['stream'] === true) {
    return { kind: 'events', events: messageEvents(head, made, stop_reason, usage), metered };
  }
  const content = [{ type: 'text', text: made.choices[0] ?? '' }];
  return { kind: 'json', body: { ...head, content, stop_reason, usage }, metered };
}

const DIMENSIONS = 8;

function embeddings(request: DemoRequest, moment: Moment): DemoAnswer {
  const input = request.body['input'];
  const texts = Array.isArray(input) ? input.slice(0, 2048).map(String) : [promptOf(request.body)];
  const data = texts.map((text, index) => ({ object: 'embedding', index, embedding: vector(text) }));
  const { prompt_tokens, total_tokens } = tokenUsage(texts.join('\n'), 0);
  const name = modelOf(request);
  return {
    kind: 'json',
    body: { object: 'list', data, model: name, usage: { prompt_tokens, total_tokens } },
    metered: { id: `emb-${moment.id}`, model: name, usage: { prompt_tokens, completion_tokens: 0, total_tokens } },
  };
}

function vector(text: string): number[] {
  const sums = Array.from({ length: DIMENSIONS }, () => 1);
  for (let i = 0; i < text.length; i++) sums[i % DIMENSIONS] = (sums[i % DIMENSIONS] ?? 0) + text.charCodeAt(i);
  const length = Math.hypot(...sums);
  return sums.map((sum) => Number((sum / length).toFixed(6)));
}

function search(request: DemoRequest, _moment: Moment, collection: string): DemoAnswer {
  const named = request.body['collections'] ?? request.body['collection'] ?? (collection || 'handbook');
  return list([
    {
      id: 'doc_1',
      object: 'document',
      score: 0.98,
      collection: named,
      text: 'Postern is a small gate beside the main one.',
    },
  ]);
}

function model(id: string, moment: Moment): Record<string, unknown> {
  return { id, object: 'model', created: seconds(moment), owned_by: 'demo' };
}

function list(data: readonly unknown[]): DemoAnswer {
  return { kind: 'json', body: { object: 'list', data, has_more: false } };
}

function thing(object: string, moment: Moment, members: Readonly<Record<string, unknown>>): DemoAnswer {
  return { kind: 'json', body: { id: `demo_${moment.id}`, object, created: seconds(moment), ...members } };
}

function wantsUsage(request: DemoRequest): boolean {
  const options = request.body['stream_options'];
  return isJsonObject(options) && options['include_usage'] === true;
}

function seconds(moment: Moment): number {
  return Math.floor(moment.nowMs / 1000);
}

function decode(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
