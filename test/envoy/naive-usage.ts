/**
 * Usage and text of an answer as JSON.parse and plain loops read them: the obvious twin of the reader in
 * `envoy/*.yaml`.
 */

import type { FinishedRequest } from '../../src/extauthz/ports.ts';

export interface NaiveUsage {
  readonly usage:
    | {
        readonly prompt: number | undefined;
        readonly completion: number | undefined;
        readonly cached: number;
        readonly cacheWrite?: number;
        readonly total: number | undefined;
      }
    | undefined;
  readonly textBytes: FinishedRequest['textBytes'];
}

const PROMPT = ['prompt_tokens', 'input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens'];
const OTHERS = ['cached_tokens', 'total_tokens'];
const ANSWER = ['completion_tokens', 'output_tokens'];
const ROOTS = ['choices', 'delta', 'output', 'content', 'data'];
const TEXTS = [
  'content',
  'text',
  'delta',
  'reasoning_content',
  'reasoning',
  'thinking',
  'refusal',
  'arguments',
  'partial_json',
];

type Members = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @param documents the JSON values of an answer in order: one, or one for each event or line */
export function naiveUsage(documents: readonly unknown[]): NaiveUsage {
  const objects = documents.filter(isObject);
  const told = new Map<string, number>();
  for (const [name, value] of objects.flatMap(Object.entries)) {
    if (name === 'usage') noteUsage(value, [...OTHERS, ...ANSWER], told);
    else if (name === 'response' && isObject(value)) noteUsage(value['usage'], [...OTHERS, ...ANSWER], told);
    else if (name === 'message' && isObject(value)) noteUsage(value['usage'], OTHERS, told);
  }
  const texts = objects.flatMap((object) =>
    ROOTS.filter((root) => holdsText(root, object[root])).map((root) => textIn(root, object[root])),
  );
  return {
    usage: meaning(told),
    textBytes: texts.length === 0 ? undefined : texts.reduce((sum, bytes) => sum + bytes, 0),
  };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 1_000_000_000;
}

/** Takes the largest of the named counts, and the prompt of the last object that reports an input. */
function noteUsage(usage: unknown, names: readonly string[], told: Map<string, number>): void {
  if (!isObject(usage)) return;
  const note = (name: string, value: unknown): void => {
    if (isCount(value)) told.set(name, Math.max(value, told.get(name) ?? 0));
  };
  for (const name of names) note(name, usage[name]);
  for (const details of [usage['prompt_tokens_details'], usage['input_tokens_details']]) {
    if (isObject(details)) note('cached_tokens', details['cached_tokens']);
  }
  const prompt = PROMPT.flatMap((name): [string, number][] => {
    const value = usage[name];
    return isCount(value) ? [[name, value + 0]] : [];
  });
  const reportsInput = prompt.some(
    ([name, count]) => (name === 'prompt_tokens' || name === 'input_tokens') && count > 0,
  );
  const isFirst = !PROMPT.some((name) => told.has(name));
  if (prompt.length === 0 || !(reportsInput || isFirst)) return;
  for (const name of PROMPT) told.delete(name);
  for (const [name, count] of prompt) told.set(name, count);
}

function meaning(told: ReadonlyMap<string, number>): NaiveUsage['usage'] {
  const of = (name: string): number => told.get(name) ?? 0;
  const any = (...names: readonly string[]): boolean => names.some((name) => told.has(name));
  const inputs = of('input_tokens') + of('cache_creation_input_tokens') + of('cache_read_input_tokens');
  const asked = Math.max(of('prompt_tokens'), inputs);
  const answered = Math.max(of('completion_tokens'), of('output_tokens'));
  const knowsPrompt = any('prompt_tokens', 'input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens');
  const knowsAnswer = any('completion_tokens', 'output_tokens');
  const knowsTotal = any('total_tokens');
  if (!knowsPrompt && !knowsAnswer && !knowsTotal) return undefined;
  const total = Math.max(of('total_tokens'), asked + answered);
  const rest = knowsTotal ? total - asked - answered : undefined;
  return {
    prompt: knowsPrompt ? asked : rest,
    completion: knowsAnswer ? answered : knowsPrompt ? rest : knowsTotal ? 0 : undefined,
    cached: Math.max(of('cached_tokens'), of('cache_read_input_tokens')),
    cacheWrite: of('cache_creation_input_tokens'),
    total: knowsTotal || (knowsPrompt && knowsAnswer) ? total : undefined,
  };
}

function holdsText(root: string, value: unknown): boolean {
  return typeof value === 'object' ? value !== null : typeof value === 'string' && TEXTS.includes(root);
}

/** Bytes of the text in one of the roots; in `data` there are vectors only. */
function textIn(root: string, value: unknown): number {
  return root === 'data' ? 0 : textOf(root, value);
}

function textOf(name: string | undefined, value: unknown): number {
  if (typeof value === 'string') return name !== undefined && TEXTS.includes(name) ? textBytes(value) : 0;
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + textOf(undefined, item), 0);
  if (!isObject(value)) return 0;
  return Object.entries(value).reduce((sum, [key, item]) => sum + textOf(key, item), 0);
}

/** The bytes of a text in UTF-8, where each half of a surrogate pair has two, also without the other one. */
function textBytes(text: string): number {
  let bytes = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    bytes += code < 0x80 ? 1 : code < 0x800 || (code >= 0xd800 && code <= 0xdfff) ? 2 : 3;
  }
  return bytes;
}
