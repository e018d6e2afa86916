/** The stand-in upstream's streams, event by event, in the forms that OpenAI's clients read. */

import type { Moment } from './answers.ts';
import type { Generation } from './generation.ts';

const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
const DONE = 'data: [DONE]\n\n';

export function chatChunks(id: string, moment: Moment, made: Generation, withUsage: boolean): string[] {
  const head = { id, object: 'chat.completion.chunk', created: Math.floor(moment.nowMs / 1000), model: made.model };
  const usage = withUsage ? { usage: null } : {};
  const chunk = (index: number, delta: object, finish: string | null): string =>
    data({ ...head, choices: [{ index, delta, finish_reason: finish }], ...usage });
  const events: string[] = [];
  for (const [index, text] of made.choices.entries()) {
    events.push(chunk(index, { role: 'assistant', content: '' }, null));
    for (const piece of pieces(text)) events.push(chunk(index, { content: piece }, null));
    events.push(chunk(index, {}, made.finish));
  }
  if (withUsage) events.push(data({ ...head, choices: [], usage: made.usage }));
  return [...events, DONE];
}

export function completionChunks(id: string, moment: Moment, made: Generation, withUsage: boolean): string[] {
  const head = { id, object: 'text_completion', created: Math.floor(moment.nowMs / 1000), model: made.model };
  const chunk = (index: number, text: string, finish: string | null): string =>
    data({ ...head, choices: [{ index, text, finish_reason: finish }], ...(withUsage ? { usage: null } : {}) });
  const events = made.choices.flatMap((text, index) => [
    ...pieces(text).map((piece) => chunk(index, piece, null)),
    chunk(index, '', made.finish),
  ]);
  if (withUsage) events.push(data({ ...head, choices: [], usage: made.usage }));
  return [...events, DONE];
}

/** @param response the finished answer, as it would be without a stream */
export function responseEvents(response: Readonly<Record<string, unknown>>, made: Generation): string[] {
  let sequence = 0;
  const event = (type: string, members: object): string =>
    `event: ${type}\n${data({ type, sequence_number: sequence++, ...members })}`;
  const started = { ...response, status: 'in_progress', output: [], usage: null };
  return [
    event('response.created', { response: started }),
    ...pieces(made.choices[0] ?? '').map((delta) =>
      event('response.output_text.delta', { output_index: 0, content_index: 0, delta }),
    ),
    event('response.completed', { response }),
  ];
}

/** As in the Anthropic API, the first event has the input's tokens, and the last but one the output's. */
export function messageEvents(
  head: Readonly<Record<string, unknown>>,
  made: Generation,
  stopReason: string,
  usage: { readonly input_tokens: number; readonly output_tokens: number },
): string[] {
  const event = (type: string, members: object): string => `event: ${type}\n${data({ type, ...members })}`;
  const started = { ...head, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } };
  return [
    event('message_start', { message: started }),
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    ...pieces(made.choices[0] ?? '').map((text) =>
      event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
    ),
    event('content_block_stop', { index: 0 }),
    event('message_delta', { delta: { stop_reason: stopReason }, usage: { output_tokens: usage.output_tokens } }),
    event('message_stop', {}),
  ];
}

function pieces(text: string): string[] {
  return text === '' ? [] : text.split(/(?<=\s)/);
}
