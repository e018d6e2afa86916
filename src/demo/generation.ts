/** The text of the stand-in model, which depends only on the request, and its usage in tokens. */

import type { Usage } from './ledger.ts';
import { type DemoRequest, isJsonObject, stringOf, wholeNumber } from './request.ts';

export interface Generation {
  readonly model: string;
  /** One text for each requested choice of each prompt. */
  readonly choices: readonly string[];
  readonly finish: 'stop' | 'length';
  readonly usage: Usage;
}

export const DEMO_MODELS = ['llama-3', 'llama-3-70b', 'mistral-small', 'text-embedding-3-small', 'gpt-secret'] as const;
const MAX_CHOICES = 2048;
const ECHOED_CHARS = 400;

export function modelOf(request: DemoRequest): string {
  return stringOf(request.body['model']) ?? request.headers['x-postern-default-model'] ?? DEMO_MODELS[0];
}

export function generate(request: DemoRequest): Generation {
  const { body } = request;
  const model = modelOf(request);
  const prompt = promptOf(body);
  const words = `This is ${model}, a stand-in. You said: ${prompt.slice(-ECHOED_CHARS) || 'nothing'}`.split(/(?<=\s)/);
  const limits = [body['max_tokens'], body['max_completion_tokens'], body['max_output_tokens'], capOf(request)];
  const limit = Math.min(...limits.map((value) => wholeNumber(value) ?? Number.POSITIVE_INFINITY));
  const spoken = words.slice(0, limit);
  const count = Math.min(Math.max(wholeNumber(body['n']) ?? 1, 1) * promptsIn(body['prompt']), MAX_CHOICES);
  return {
    model,
    choices: Array.from({ length: count }, () => spoken.join('')),
    finish: spoken.length < words.length ? 'length' : 'stop',
    usage: tokenUsage(prompt, spoken.length * count),
  };
}

/** Each prompt of a list has its own answers. A list of numbers is one prompt as token ids. */
function promptsIn(prompt: unknown): number {
  return Array.isArray(prompt) && typeof prompt[0] !== 'number' ? Math.max(1, prompt.length) : 1;
}

function capOf(request: DemoRequest): number | undefined {
  const cap = request.headers['x-postern-max-tokens'];
  return cap !== undefined && /^\d{1,15}$/.test(cap) ? Number(cap) : undefined;
}

/** Estimates one token for four characters. */
export function tokenUsage(prompt: string, completion: number): Usage {
  const asked = Math.max(1, Math.ceil(prompt.length / 4));
  return { prompt_tokens: asked, completion_tokens: completion, total_tokens: asked + completion };
}

/** Returns all text in `messages`, `prompt` or `input`, in the forms of the OpenAI API. */
export function promptOf(body: DemoRequest['body']): string {
  const parts: string[] = [];
  const visit = (value: unknown, depth: number): void => {
    if (typeof value === 'string') parts.push(value);
    else if (depth > 0 && Array.isArray(value)) for (const item of value) visit(item, depth - 1);
    else if (depth > 0 && isJsonObject(value)) visit(value['content'] ?? value['text'], depth - 1);
  };
  visit(body['messages'] ?? body['prompt'] ?? body['input'] ?? body['query'], 6);
  return parts.join('\n');
}
