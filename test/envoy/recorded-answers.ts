/** Answers of each API, as the objects of their events, with the usage and the text that they report. */

import type { NaiveUsage } from './naive-usage.ts';
import { RESPONSE } from './usage-edge.ts';

const content = (text: string) => ({
  model: 'm-2',
  choices: [{ index: 0, delta: { content: text }, finish_reason: null }],
});
export const start = {
  type: 'message_start',
  message: { model: 'm-2', content: [], usage: { input_tokens: 25, output_tokens: 1 } },
};
export const text = (delta: string) => ({
  type: 'content_block_delta',
  index: 0,
  delta: { type: 'text_delta', text: delta },
});
const part = (prompt: number, completion: number) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
});
export const told = (parts: object) => ({
  prompt: undefined,
  completion: undefined,
  cached: 0,
  cacheWrite: 0,
  total: undefined,
  ...parts,
});

export const RECORDED: readonly (readonly [name: string, documents: readonly unknown[], expected: NaiveUsage])[] = [
  [
    'details that come first do not hide the total',
    [{ usage: { completion_tokens_details: { total_tokens: 1 }, x: { total_tokens: 999 }, ...part(1000, 2000) } }],
    { usage: told({ prompt: 1000, completion: 2000, total: 3000 }), textBytes: undefined },
  ],
  [
    'an OpenAI stream without usage has the text of its deltas',
    [content('a'.repeat(200)), content('"\n日é'), { choices: [{ delta: {}, finish_reason: 'stop' }] }],
    { usage: undefined, textBytes: 207 },
  ],
  [
    'reasoning, refusals and arguments of calls are text; roles, names and ids are not',
    [
      {
        choices: [
          {
            delta: {
              role: 'assistant',
              reasoning_content: 'ab',
              refusal: 'c',
              tool_calls: [{ id: 'call_1', function: { name: 'f', arguments: '{"x"' } }],
            },
          },
        ],
      },
    ],
    { usage: undefined, textBytes: 7 },
  ],
  [
    'usage after each event, as vLLM sends it, is that of the whole answer so far',
    [
      { ...content('a'), usage: part(9, 1) },
      { ...content('b'), usage: part(9, 2) },
      { choices: [], usage: part(9, 3) },
    ],
    { usage: told({ prompt: 9, completion: 3, total: 12 }), textBytes: 2 },
  ],
  [
    'an Anthropic stream tells the prompt first and the answer last',
    [start, text('Hello'), { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 15 } }],
    { usage: told({ prompt: 25, completion: 15, total: 40 }), textBytes: 5 },
  ],
  [
    'an Anthropic stream with a cache tells three parts of the prompt',
    [
      {
        type: 'message_start',
        message: {
          usage: { input_tokens: 5, cache_creation_input_tokens: 30, cache_read_input_tokens: 200, output_tokens: 2 },
        },
      },
      {
        type: 'message_delta',
        usage: { input_tokens: 5, cache_creation_input_tokens: 30, cache_read_input_tokens: 200, output_tokens: 40 },
      },
    ],
    { usage: told({ prompt: 235, completion: 40, cached: 200, cacheWrite: 30, total: 275 }), textBytes: undefined },
  ],
  [
    'the prompt of an Anthropic stream is booked once if its last event reports the prompt in other members',
    [
      { type: 'message_start', message: { usage: { input_tokens: 34_824, output_tokens: 1 } } },
      { type: 'message_delta', usage: { input_tokens: 3_883, cache_read_input_tokens: 30_464, output_tokens: 40 } },
    ],
    { usage: told({ prompt: 34_347, completion: 40, cached: 30_464, total: 34_387 }), textBytes: undefined },
  ],
  [
    'an Anthropic stream whose last event has no input, or 0, keeps the prompt of the first one',
    [
      start,
      { type: 'message_delta', usage: { cache_read_input_tokens: 7, output_tokens: 2 } },
      { type: 'message_delta', usage: { input_tokens: 0, output_tokens: 3 } },
    ],
    { usage: told({ prompt: 25, completion: 3, total: 28 }), textBytes: undefined },
  ],
  [
    'an Anthropic stream that breaks off tells the prompt only: its first count of the answer is a guess',
    [start, text('Hello')],
    { usage: told({ prompt: 25 }), textBytes: 5 },
  ],
  [
    'an answer of Anthropic',
    [
      {
        type: 'message',
        role: 'assistant',
        model: 'm-2',
        content: [{ type: 'text', text: 'Hi' }],
        usage: { input_tokens: 10, output_tokens: 3 },
      },
    ],
    { usage: told({ prompt: 10, completion: 3, total: 13 }), textBytes: 2 },
  ],
  [
    'a stream of /v1/responses has its text once',
    [
      { type: 'response.created', response: { usage: null, output: [] } },
      { type: 'response.output_text.delta', item_id: 'msg_1', delta: 'Hello' },
      { type: 'response.output_text.done', text: 'Hello' },
      { type: 'response.output_item.done', item: { content: [{ type: 'output_text', text: 'Hello' }] } },
      {
        type: 'response.completed',
        response: {
          output: [{ content: [{ text: 'Hello' }] }],
          usage: { ...RESPONSE, output_tokens_details: { reasoning_tokens: 3 } },
        },
      },
    ],
    { usage: told({ prompt: 11, completion: 22, cached: 4, total: 33 }), textBytes: 5 },
  ],
  [
    'an answer of /v1/completions',
    [{ choices: [{ text: 'ab' }, { text: 'c' }], usage: part(4, 3) }],
    { usage: told({ prompt: 4, completion: 3, total: 7 }), textBytes: 3 },
  ],
  [
    'embeddings have no text',
    [{ object: 'list', data: [{ embedding: 'AAAA', index: 0 }], usage: { prompt_tokens: 5, total_tokens: 5 } }],
    { usage: told({ prompt: 5, completion: 0, total: 5 }), textBytes: 0 },
  ],
  [
    'thinking that is in the total only',
    [{ choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 40 } }],
    { usage: told({ prompt: 10, completion: 5, total: 40 }), textBytes: 0 },
  ],
];
