/** The filter of `envoy/*.yaml` that reads the usage of an answer of any form, and changes nothing in it. */

import { isUtf8 } from 'node:buffer';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FinishedRequest } from '../../src/extauthz/ports.ts';
import { anyCharacter } from '../support/properties.ts';
import {
  CHAT,
  chat,
  DONE,
  EVENTS,
  event,
  inPieces,
  JSON_TYPE,
  RESPONSE,
  type Reply,
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

describe.each([
  ['of a known length', (body: string) => whole(body)],
  [
    'of a known length, with a parameter in its type',
    (body: string) => whole(body, { 'content-type': 'application/json; charset=utf-8' }),
  ],
  ['of an unknown length', (body: string) => inPieces([body])],
  ['that comes byte by byte', (body: string) => inPieces([...Buffer.from(body)].map((byte) => Buffer.of(byte)))],
])('a JSON answer %s', (_name, reply) => {
  it.each<[string, string, FinishedRequest['usage']]>([
    ['says what it spent', chat(CHAT), usageOf(11, 22, 4)],
    ['of /v1/responses', chat(RESPONSE), usageOf(11, 22, 4)],
    ['of embeddings', chat({ prompt_tokens: 5, total_tokens: 5 }), usageOf(5, 0)],
    ['with details that are null', chat({ ...CHAT, prompt_tokens_details: null }), usageOf(11, 22)],
    ['with spaces', JSON.stringify(JSON.parse(chat(CHAT)), undefined, 2), usageOf(11, 22, 4)],
    ['says nothing', chat(undefined), undefined],
    ['says null', chat(null), undefined],
    ['is no object', '[{"usage":{"total_tokens":3}}]', undefined],
    ['is no JSON', '"usage":{"total_tokens"', undefined],
    [
      'repeats what somebody wrote, who measures nothing by that',
      chat(CHAT, [{ message: { content: 'a \\" "usage":{"total_tokens":9} \\\\', usage: { total_tokens: 8 } } }]),
      usageOf(11, 22, 4),
    ],
  ])('%s', async (_what, body, expected) => {
    const [answer, usage] = await ask(reply(body));
    expect(answer.body).toBe(body);
    expect(await usage()).toEqual(expected);
  });
});

describe('a JSON answer', () => {
  it.each([
    ['of a known length', (body: string) => whole(body)],
    ['of an unknown length', (body: string) => inPieces([body])],
  ])('of 30 MB %s reaches its client, and is read', async (_name, reply) => {
    const vector = JSON.stringify(Array.from({ length: 1536 }, (_, i) => -0.0123456789 + i * 1e-9));
    const data = `[${Array.from({ length: 1000 }, (_, index) => `{"index":${index},"embedding":${vector}}`).join(',')}]`;
    const body = `{"object":"list","data":${data},"model":"m-2","usage":{"prompt_tokens":8,"total_tokens":8}}`;
    expect(body.length).toBeGreaterThan(20_000_000);
    const [answer, usage] = await ask(reply(body));
    expect([answer.status, answer.body.length]).toEqual([200, body.length]);
    expect(await usage()).toEqual(usageOf(8, 0));
  });

  it('that the upstream compressed without a request for it passes unchanged, is not read, and is reported as unreadable', async () => {
    const packed = gzipSync(chat(CHAT));
    for (const reply of [whole, (body: Buffer, headers: Record<string, string>) => inPieces([body], headers)]) {
      const [answer, , finished] = await ask(reply(packed, { ...JSON_TYPE, 'content-encoding': 'gzip' }), true);
      expect(Buffer.from(answer.body, 'latin1').equals(packed)).toBe(true);
      expect(await finished()).toMatchObject({ usage: undefined, textBytes: 'hidden', status: 200 });
    }
  });

  it('with trailers is read too', async () => {
    const [answer, usage] = await ask((outgoing) => {
      outgoing.writeHead(200, { ...JSON_TYPE, trailer: 'x-after' });
      outgoing.addTrailers({ 'x-after': '1' });
      outgoing.end(chat(CHAT));
    });
    expect(answer.body).toBe(chat(CHAT));
    expect(await usage()).toEqual(usageOf(11, 22, 4));
  });

  it.each([204, 304])('that is none, %i, is passed on', async (status) => {
    const [answer, usage] = await ask((outgoing) => void outgoing.writeHead(status, JSON_TYPE).end());
    expect([answer.status, answer.body]).toEqual([status, '']);
    expect(await usage()).toBeUndefined();
  });
});

describe('a response of /v1/responses', () => {
  const body = (parts: object): string => JSON.stringify({ id: 'resp_1', object: 'response', model: 'm-2', ...parts });
  const created = (parts: object): string => event({ type: 'response.created', response: { id: 'resp_1', ...parts } });
  const pending = { id: 'resp_1', complete: false, background: true };

  it.each<[string, Reply, FinishedRequest['response']]>([
    ['queued', whole(body({ status: 'queued', background: true, usage: null })), pending],
    ['in progress', inPieces([...body({ background: true, status: 'in_progress' })]), pending],
    ['whose state comes first', whole('{"status":"queued","background" : true ,"id":"resp_1"}'), pending],
    ['not in the background', whole(body({ status: 'queued', background: false })), { ...pending, background: false }],
    [
      'complete',
      whole(body({ status: 'completed', usage: RESPONSE })),
      { ...pending, complete: true, background: false },
    ],
    ['that was canceled', whole(body({ background: true, status: 'cancelled' })), { ...pending, complete: true }],
    [
      'of a stream that ends before it',
      inPieces(
        [created({ status: 'queued', background: true }), created({ status: 'in_progress', background: true })],
        EVENTS,
      ),
      pending,
    ],
    [
      'of a whole stream',
      inPieces(
        [created({ status: 'in_progress', background: true }), created({ status: 'completed', usage: RESPONSE })],
        EVENTS,
      ),
      { ...pending, complete: true },
    ],
    [
      'with an id that cannot be kept',
      whole(body({ status: 'queued', id: 'x'.repeat(129) })),
      { id: undefined, complete: false, background: false },
    ],
    ['in a state that is not known', whole(body({ status: 'resting' })), undefined],
    ['that is none', whole(chat(CHAT, [{ status: 'queued', message: { content: 'queued' } }])), undefined],
  ])('the reader reports %s with its id and state', async (_name, reply, expected) => {
    const [, , finished] = await ask(reply);
    expect((await finished()).response).toEqual(expected);
  });
});

describe('a stream', () => {
  it.each<[string, string[], FinishedRequest['usage']]>([
    [
      'says it in its last event',
      [event({ model: 'm-2', usage: null }), event({ model: 'm-2', usage: CHAT }), DONE],
      usageOf(11, 22, 4),
    ],
    [
      'says it with each event, and the last counts',
      [event({ model: 'm-2', usage: { ...CHAT, total_tokens: 1 } }), event({ usage: CHAT }), DONE],
      usageOf(11, 22, 4),
    ],
    [
      'of /v1/responses',
      [
        `event: response.created\n${event({ type: 'response.created', response: { model: 'm-2', usage: null } })}`,
        `event: response.completed\n${event({ type: 'response.completed', response: { model: 'm-2', usage: RESPONSE } })}`,
      ],
      usageOf(11, 22, 4),
    ],
    [
      'with CRLF, comments and pings',
      [
        ': hello\r\n\r\n',
        event({ model: 'm-2', usage: CHAT }, '\r\n'),
        'event: ping\r\ndata: {}\r\n\r\n',
        event('[DONE]', '\r\n'),
      ],
      usageOf(11, 22, 4),
    ],
    [
      'whose last event has no end',
      [event({ model: 'm-2' }), `data: ${JSON.stringify({ usage: CHAT })}\n`],
      usageOf(11, 22, 4),
    ],
    ['cut anywhere', [...event({ model: 'm-2', usage: CHAT }), DONE], usageOf(11, 22, 4)],
    ['with a long event', [event({ model: 'm-2', text: 'x'.repeat(900_000), usage: CHAT }), DONE], usageOf(11, 22, 4)],
    [
      'with one too long to be read, and its usage in another',
      [event({ text: 'x'.repeat(3_000_000) }), event({ model: 'm-2', usage: CHAT }), DONE],
      usageOf(11, 22, 4),
    ],
    ['with what is no JSON', [event('{"usage":'), event({ model: 'm-2', usage: CHAT }), DONE], usageOf(11, 22, 4)],
    ['says nothing', [event({ model: 'm-2' }), DONE], undefined],
  ])('%s', async (_name, events, expected) => {
    const [answer, usage] = await ask(inPieces(events, EVENTS));
    expect(answer.body).toBe(events.join(''));
    expect(await usage()).toEqual(expected);
  });
});

/** An answer whose model has these bytes; the Lua filter reads it, for its length is unknown. */
const named = (model: Buffer): Buffer =>
  Buffer.concat([Buffer.from('{"model":"'), model, Buffer.from(`","usage":${JSON.stringify(CHAT)}}`)]);

/**
 * Returns the reported name of a model: its whole characters within 512 bytes, and nothing if those bytes are not
 * UTF-8.
 */
function modelOf(bytes: Buffer): string | undefined {
  const kept = bytes.subarray(0, MAX_MODEL_BYTES);
  if (bytes.length <= MAX_MODEL_BYTES) return isUtf8(kept) ? kept.toString() : undefined;
  for (let end = kept.length; end >= kept.length - 3; end--) {
    const [whole, rest] = [kept.subarray(0, end), kept.subarray(end)];
    if (isUtf8(whole) && (rest.length === 0 || beginsCharacter(rest))) return whole.toString();
  }
  return undefined;
}

function beginsCharacter(bytes: Buffer): boolean {
  const ends = [0x80, 0x90, 0xa0].flatMap((next) => [[next], [next, 0x80], [next, 0x80, 0x80]]);
  return ends.some((end) => isUtf8(Buffer.concat([bytes, Buffer.from(end)])) && bytes.length + end.length <= 4);
}
const MAX_MODEL_BYTES = 512;

/** Whether a JSON string may hold this byte as it is. */
const isPlain = (byte: number): boolean => byte >= 0x20 && byte !== 0x22 && byte !== 0x5c;
const PLAIN_BYTE = fc.nat({ max: 255 }).filter(isPlain);
const PLAIN_TEXT = fc
  .string({ unit: anyCharacter, maxLength: 260 })
  .map((text) => Buffer.from([...Buffer.from(text)].filter(isPlain)));
/** Valid text, any bytes, and text with bytes at the place where it is cut. */
const MODEL_BYTES = fc.oneof(
  PLAIN_TEXT,
  fc.array(PLAIN_BYTE, { minLength: 1, maxLength: 8 }).map((bytes) => Buffer.from(bytes)),
  fc
    .tuple(
      fc.integer({ min: 500, max: 512 }),
      fc.array(PLAIN_BYTE, { maxLength: 12 }),
      fc.constantFrom('é', '日', '😀'),
    )
    .map(([length, bytes, character]) =>
      Buffer.concat([Buffer.alloc(length, 'a'), Buffer.from(bytes), Buffer.from(character.repeat(9))]),
    ),
  fc
    .tuple(fc.integer({ min: 500, max: 512 }), fc.constantFrom('é', '日', '😀'))
    .map(([length, character]) => Buffer.from('a'.repeat(length) + character.repeat(9))),
);

describe('the model in an answer', () => {
  it.each([
    ['of 512 bytes is reported whole', `${'a'.repeat(509)}日`, `${'a'.repeat(509)}日`],
    ['is cut before the character that goes beyond 512 bytes', `${'a'.repeat(510)}日`, 'a'.repeat(510)],
    ['of 9,000 bytes is cut before the character that goes beyond 512 bytes', '日'.repeat(3000), '日'.repeat(170)],
  ])('%s', async (_name, model, expected) => {
    for (const reply of [
      inPieces([named(Buffer.from(model))]),
      inPieces([event(named(Buffer.from(model)).toString())], EVENTS),
    ]) {
      const [, usage] = await ask(reply);
      expect(await usage()).toEqual(usageOf(11, 22, 4, expected));
    }
  });

  it('is cut as by a naive reader, for any bytes', async () => {
    const asked = await Promise.all(
      fc.sample(MODEL_BYTES, 300).map(async (bytes) => {
        const [answer, told] = await ask(inPieces([named(bytes)]), true);
        expect(answer.status).toBe(200);
        return { bytes, told };
      }),
    );
    for (const { bytes, told } of asked) {
      const expected = modelOf(bytes);
      expect(await told(), bytes.toString('hex')).toEqual({
        ...usageOf(11, 22, 4),
        model: expected,
      });
    }
  });

  it.each([
    ['of a known length', (body: Buffer) => whole(body)],
    ['of an unknown length', (body: Buffer) => inPieces([body])],
  ])('%s that is no UTF-8 or very long takes no other request’s usage with it', async (_name, reply) => {
    const odd = [
      Buffer.from([0x61, 0xe6, 0x97]),
      Buffer.from([0xff]),
      Buffer.from([0xed, 0xa0, 0x80]),
      Buffer.alloc(900_000, 'é'),
    ];
    const asked = await Promise.all(
      [...odd, Buffer.from('m-2'), ...odd, Buffer.from('m-2')].map(async (model) => {
        const [answer, told] = await ask(reply(named(model)), true);
        expect(answer.status).toBe(200);
        return { model: model.toString(), told };
      }),
    );
    for (const { model, told } of asked) {
      const usage = await told();
      if (model === 'm-2') expect(usage).toEqual(usageOf(11, 22, 4));
    }
  });
});

describe('Envoy outlives an upstream that sends', () => {
  const ODD = ['1', 'null', '"x"', 'true', '', '[', '{', '"', '\\', '['.repeat(300_000), '{"usage":'.repeat(90_000)];

  it.each([
    ['JSON of a known length', (body: string) => whole(body)],
    ['JSON of an unknown length', (body: string) => inPieces([body])],
    ['events', (body: string) => inPieces([event(body), event(chat(CHAT))], EVENTS)],
  ])('odd %s', async (_name, reply) => {
    for (const body of ODD) expect((await ask(reply(body)))[0].status).toBe(200);
    const [, usage] = await ask(reply(chat(CHAT)));
    expect(await usage()).toEqual(usageOf(11, 22, 4));
  });
});
