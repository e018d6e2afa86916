/** The reader of `envoy/*.yaml` finds the same usage and text in every form of an answer, as each API means them. */

import { once } from 'node:events';
import { request } from 'node:http';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FinishedRequest } from '../../src/extauthz/ports.ts';
import { runs } from '../support/properties.ts';
import { type NaiveUsage, naiveUsage } from './naive-usage.ts';
import { DELTAS, DOCUMENT } from './usage-documents.ts';
import {
  CHAT,
  chat,
  DONE,
  EVENTS,
  event,
  inPieces,
  JSON_TYPE,
  RESPONSE,
  startUsageEdge,
  type UsageEdge,
  usageOf,
  whole,
} from './usage-edge.ts';

let edge: UsageEdge;
const ask: UsageEdge['ask'] = (reply, binary) => edge.ask(reply, binary);

beforeAll(async () => {
  edge = await startUsageEdge();
});

afterAll(() => edge.stop());

/** Cuts a text into pieces at these places. */
function cut(text: string, places: readonly number[]): Buffer[] {
  const bytes = Buffer.from(text);
  const ends = [...places.map((place) => place % bytes.length), bytes.length].sort((a, b) => a - b);
  return ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end)).filter((piece) => piece.length > 0);
}

/** Returns the usage that the reader found, without the model. */
async function found(finished: Promise<FinishedRequest>): Promise<NaiveUsage> {
  const { usage, textBytes } = await finished;
  if (usage === undefined) return { usage, textBytes };
  const { model: _model, ...counts } = usage;
  return { usage: counts, textBytes };
}

const BOM = '\ufeff';
const CASE = fc.record({
  documents: fc.oneof(fc.array(DOCUMENT, { minLength: 1, maxLength: 4 }), DELTAS),
  cuts: fc.array(fc.nat(), { maxLength: 8 }),
});

/** A form in which an answer may have JSON values: all of a list, or the first. */
interface Form {
  readonly name: string;
  readonly type: string;
  readonly values: number;
  readonly wrap: (documents: readonly string[]) => string;
}

const ALL = Number.POSITIVE_INFINITY;
const FORMS: readonly Form[] = [
  { name: 'JSON', type: 'application/json', values: 1, wrap: ([text = '']) => text },
  {
    name: 'JSON after a byte-order mark, its type in capitals',
    type: 'Application/JSON;Charset=UTF-8',
    values: 1,
    wrap: ([text = '']) => `${BOM}\r\n ${text}\n`,
  },
  {
    name: 'JSON of a type of its own',
    type: 'application/vnd.model+json ; v=1',
    values: 1,
    wrap: ([text = '']) => text,
  },
  {
    name: 'lines of JSON',
    type: 'application/x-ndjson',
    values: ALL,
    wrap: (documents) => documents.map((text) => `${text}\n`).join(''),
  },
  {
    name: 'lines of JSON that end with a carriage return and a line feed',
    type: 'Application/JSONL; charset=utf-8',
    values: ALL,
    wrap: (documents) => BOM + documents.join('\r\n'),
  },
  {
    name: 'events',
    type: 'text/event-stream',
    values: ALL,
    wrap: (documents) => [...documents.map((text) => event(text)), DONE].join(''),
  },
  {
    name: 'events after a byte-order mark, with lines that end with a carriage return and a line feed',
    type: 'Text/Event-Stream;charset=utf-8',
    values: ALL,
    wrap: (documents) => BOM + documents.map((text) => event(text, '\r\n')).join(''),
  },
  {
    name: 'events with lines that end with a carriage return, comments and names',
    type: 'text/event-stream',
    values: ALL,
    wrap: (documents) => documents.map((text) => `: x\revent: y\rdata:${text}\rid: 7\r\r`).join(''),
  },
];

describe('the reader finds in an answer what JSON.parse finds, however the answer is cut', () => {
  it.each(FORMS)('$name', async ({ wrap, type, values }) => {
    const asked = await Promise.all(
      fc.sample(CASE, runs(120)).map(async ({ documents, cuts }) => {
        const text = wrap(documents);
        const [answer, , finished] = await ask(inPieces(cut(text, cuts), { 'content-type': type }));
        expect(answer.body.replace(BOM, '')).toBe(text.replace(BOM, ''));
        return { finished, text, expected: naiveUsage(documents.slice(0, values).map((one) => JSON.parse(one))) };
      }),
    );
    for (const { finished, text, expected } of asked) expect(await found(finished()), text).toEqual(expected);
  });

  it('the same in every form of the same answer', async () => {
    for (const [document] of fc.sample(fc.tuple(DOCUMENT), runs(40))) {
      const replies = FORMS.map(({ wrap, type }) => whole(wrap([document]), { 'content-type': type }));
      const all = await Promise.all(replies.map(async (reply) => found((await ask(reply))[2]())));
      for (const one of all) expect(one, document).toEqual(all[0]);
    }
  });
});

describe('usage and text are read as each API means them', () => {
  const content = (text: string) => ({
    model: 'm-2',
    choices: [{ index: 0, delta: { content: text }, finish_reason: null }],
  });
  const start = {
    type: 'message_start',
    message: { model: 'm-2', content: [], usage: { input_tokens: 25, output_tokens: 1 } },
  };
  const text = (delta: string) => ({
    type: 'content_block_delta',
    index: 0,
    delta: { type: 'text_delta', text: delta },
  });
  const part = (prompt: number, completion: number) => ({
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
  });
  const told = (parts: object) => ({
    prompt: undefined,
    completion: undefined,
    cached: 0,
    cacheWrite: 0,
    total: undefined,
    ...parts,
  });

  it.each<[string, readonly unknown[], NaiveUsage]>([
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
      [
        start,
        text('Hello'),
        { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 15 } },
      ],
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
  ])('%s', async (_name, documents, expected) => {
    const texts = documents.map((one) => JSON.stringify(one));
    expect(naiveUsage(documents)).toEqual(expected);
    for (const { name, wrap, type, values } of FORMS) {
      if (documents.length > values) continue;
      expect(await found((await ask(whole(wrap(texts), { 'content-type': type })))[2]()), name).toEqual(expected);
    }
  });

  it.each([['identity'], ['Identity']])('an answer whose encoding is %s is read', async (encoding) => {
    const [, usage] = await ask(whole(chat(CHAT), { ...JSON_TYPE, 'content-encoding': encoding }));
    expect(await usage()).toEqual(usageOf(11, 22, 4));
  });

  it.each(['text/plain', 'application/octet-stream', ''])('an answer of the type %j is not read', async (type) => {
    const [, , finished] = await ask(whole(chat(CHAT), { 'content-type': type }));
    expect(await finished()).toMatchObject({
      usage: undefined,
      textBytes: undefined,
      responseBytes: chat(CHAT).length,
    });
  });

  it('a stream that its client leaves is measured up to the last byte that passed', async () => {
    const { metered } = edge;
    const model = edge.prepare((outgoing) => {
      outgoing.writeHead(200, EVENTS);
      outgoing.write(event(start) + event(text('Hello')));
    });
    const headers = { authorization: `Bearer ${metered.world.userToken}`, 'content-type': 'application/json' };
    const outgoing = request({
      host: '127.0.0.1',
      port: metered.edge.port,
      path: '/v1/messages',
      method: 'POST',
      headers,
      agent: false,
    });
    outgoing.on('error', () => undefined);
    outgoing.end(JSON.stringify({ model, messages: [] }));
    const [incoming] = await once(outgoing, 'response');
    incoming.on('error', () => undefined);
    await once(incoming, 'data');
    outgoing.destroy();
    const finished = metered.finished(model);
    expect(await found(finished)).toEqual({ usage: told({ prompt: 25 }), textBytes: 5 });
    expect(await finished).toMatchObject({ status: 200, upstream: 'forwarded' });
  });
});
