/**
 * Envoy's own counter, as `postern envoy config --usage native` configures it, beside the Lua filter of the same Envoy.
 * The vectors are those of the table in docs/limits.md, so an Envoy that counts otherwise fails here.
 */

import { once } from 'node:events';
import { request } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { countingNatively } from '../../src/cli/envoy-native-usage.ts';
import type { FinishedRequest } from '../../src/extauthz/ports.ts';
import { RECORDED, start, text, told } from './recorded-answers.ts';
import {
  CHAT,
  chat,
  DONE,
  EVENTS,
  event,
  inPieces,
  JSON_TYPE,
  type Reply,
  startUsageEdge,
  type UsageEdge,
  usageOf,
  whole,
} from './usage-edge.ts';

const CHATS = '/v1/chat/completions';
const MESSAGES = '/v1/messages';
/** Of this route, the Lua filter reads every answer, whatever its API. */
const BY_LUA = '/v1/completions';

let edge: UsageEdge;

beforeAll(async () => {
  edge = await startUsageEdge(countingNatively);
});

afterAll(() => edge.stop());

/** Requests one answer by each reader, and returns the reports. The answer passes both unchanged. */
async function byBoth(reply: Reply, path: string): Promise<{ native: FinishedRequest; lua: FinishedRequest }> {
  const [[nativeAnswer, , native], [luaAnswer, , lua]] = await Promise.all([
    edge.ask(reply, true, path),
    edge.ask(reply, true, BY_LUA),
  ]);
  expect([nativeAnswer.status, nativeAnswer.body]).toEqual([luaAnswer.status, luaAnswer.body]);
  return { native: await native(), lua: await lua() };
}

const withoutModel = ({ usage }: FinishedRequest): unknown => usage && { ...usage, model: undefined };
const counts = (prompt: number, completion: number, parts: object = {}): object => ({
  ...told({ prompt, completion, total: prompt + completion, ...parts }),
  model: undefined,
});

/** The recorded answers of which the counter has other numbers than the Lua filter. */
const OTHERWISE: ReadonlyMap<string, object> = new Map([
  [
    'an Anthropic stream whose last event has no input, or 0, keeps the prompt of the first one',
    counts(7, 3, { cached: 7 }),
  ],
  [
    'an Anthropic stream that breaks off tells the prompt only: its first count of the answer is a guess',
    counts(25, 1),
  ],
]);

describe('the counter reads the usage that the Lua filter reads, and no text', () => {
  it.each(RECORDED)('%s', async (name, documents) => {
    const texts = documents.map((one) => JSON.stringify(one));
    const path = texts.some((one) => one.includes('"type":"message')) ? MESSAGES : CHATS;
    const replies = [whole([...texts.map((one) => event(one)), DONE].join(''), EVENTS)];
    if (texts.length === 1) replies.push(whole(texts.join('')));
    for (const reply of replies) {
      const { native, lua } = await byBoth(reply, path);
      expect(withoutModel(native)).toEqual(OTHERWISE.get(name) ?? withoutModel(lua));
      expect(native.textBytes).toBeUndefined();
    }
  });
});

const json = (usage: string): Reply => whole(`{"model":"m-2","choices":[],"usage":${usage}}`);
const COUNTS = '{"prompt_tokens":11,"completion_tokens":22}';
const READ = usageOf(11, 22);
const beside = (content: string | Buffer): Reply =>
  whole(Buffer.concat([Buffer.from('{"model":"m-2","x":'), Buffer.from(content), Buffer.from(`,"usage":${COUNTS}}`)]));
const events = (...data: readonly unknown[]): Reply => whole(data.map((one) => event(one)).join(''), EVENTS);

type Read = FinishedRequest['usage'];

describe('an answer whose usage both read', () => {
  it.each<[string, Reply, Read]>([
    ['of a JSON type of its own', whole(chat(CHAT), { 'content-type': 'application/vnd.x+json' }), usageOf(11, 22, 4)],
    ['that comes in pieces', inPieces([...chat(CHAT)]), usageOf(11, 22, 4)],
    ['with counts in other forms', json('{"prompt_tokens":1.1e1,"completion_tokens":22.0}'), READ],
    [
      'with a total that is larger than its parts',
      json('{"prompt_tokens":1,"completion_tokens":2,"total_tokens":9}'),
      {
        ...usageOf(1, 2),
        total: 9,
      },
    ],
    ['with one part and the total', json('{"prompt_tokens":5,"total_tokens":9}'), usageOf(5, 4)],
    ['of 3.9 MB', beside(`"${'x'.repeat(3_900_000)}"`), READ],
    ['of 4.5 MB whose length is known', beside(`"${'x'.repeat(4_500_000)}"`), READ],
    ['of 100,000 events', events(...Array(100_000).fill('{"choices":[]}'), chat(CHAT)), usageOf(11, 22, 4)],
    [
      'with a status that is an error',
      (outgoing) => void outgoing.writeHead(404, JSON_TYPE).end(chat(CHAT)),
      usageOf(11, 22, 4),
    ],
    ['in lines of JSON', whole(`${chat(CHAT)}\n`, { 'content-type': 'application/x-ndjson' }), usageOf(11, 22, 4)],
    ['that has none', json('null'), undefined],
    ['of another type', whole(chat(CHAT), { 'content-type': 'text/plain' }), undefined],
  ])('%s', async (_name, reply, expected) => {
    const { native, lua } = await byBoth(reply, CHATS);
    expect(native.usage).toEqual(expected);
    expect(lua.usage).toEqual(expected);
  });

  it('is the same if the answer is encoded: neither reads it, and its text is reported as hidden', async () => {
    const packed = gzipSync(chat(CHAT));
    const { native, lua } = await byBoth(whole(packed, { ...JSON_TYPE, 'content-encoding': 'gzip' }), CHATS);
    for (const one of [native, lua]) expect(one).toMatchObject({ usage: undefined, textBytes: 'hidden' });
  });
});

describe('an answer of which only the Lua filter reads all usage, and the counter reports none', () => {
  it.each<[string, Reply, Read]>([
    [
      'with a count that is no number',
      json('{"prompt_tokens":"x","completion_tokens":3,"total_tokens":9}'),
      usageOf(6, 3),
    ],
    ['with a member twice', json('{"prompt_tokens":1,"prompt_tokens":11,"completion_tokens":22}'), READ],
    ['nested 200 deep', beside('['.repeat(200) + ']'.repeat(200)), READ],
    ['with bytes that are not UTF-8', beside(Buffer.from([0x22, 0xff, 0x22])), READ],
    ['with half of a surrogate pair', beside('"\\ud800"'), READ],
    ['with a byte-order mark', whole(`\ufeff${chat(CHAT)}`), usageOf(11, 22, 4)],
    ['with text behind it', whole(`${chat(CHAT)} x`), usageOf(11, 22, 4)],
    [
      'of 4.5 MB whose length is not known',
      inPieces([chat(CHAT).replace('"x"', `"${'x'.repeat(4_500_000)}"`)]),
      usageOf(11, 22, 4),
    ],
    ['with an event of 3 MB', events({ x: 'x'.repeat(3_000_000) }, chat(CHAT)), usageOf(11, 22, 4)],
    ['with an event that is no JSON', events('{"x":', chat(CHAT)), usageOf(11, 22, 4)],
    ['with an event that is no object', events('1', '"x"', `${'['.repeat(300_000)}`, chat(CHAT)), usageOf(11, 22, 4)],
    ['whose last event has no end', whole(`data: ${chat(CHAT)}\n`, EVENTS), usageOf(11, 22, 4)],
  ])('%s', async (_name, reply, expected) => {
    const { native, lua } = await byBoth(reply, CHATS);
    expect(native).toMatchObject({ usage: undefined, textBytes: undefined, status: 200 });
    expect(lua.usage).toEqual(expected);
  });
});

it('the counter leaves out a model’s name of more than 256 bytes', async () => {
  const { native, lua } = await byBoth(whole(chat(CHAT).replace('m-2', 'm'.repeat(300))), CHATS);
  expect([native.usage?.model, lua.usage?.model]).toEqual([undefined, 'm'.repeat(300)]);
});

it('the counter takes the last usage of a stream, the Lua filter the largest', async () => {
  const usage = (completion: number): object => ({
    model: 'm-2',
    usage: { prompt_tokens: 9, completion_tokens: completion },
  });
  const { native, lua } = await byBoth(events(usage(3), usage(1)), CHATS);
  expect([native.usage, lua.usage]).toEqual([usageOf(9, 1), usageOf(9, 3)]);
});

it.each([
  [CHATS, event({ ...JSON.parse(chat(CHAT)), choices: [{ delta: { content: 'Hello' } }] })],
  [MESSAGES, event(start) + event(text('Hello'))],
])(
  'of a stream of %s that its client leaves, the counter reports nothing, so all its bytes count',
  async (path, sent) => {
    const { metered } = edge;
    const model = edge.prepare((outgoing) => void outgoing.writeHead(200, EVENTS).write(sent));
    const headers = { authorization: `Bearer ${metered.world.userToken}`, 'content-type': 'application/json' };
    const outgoing = request({
      host: '127.0.0.1',
      port: metered.edge.port,
      path,
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
    expect(await metered.finished(model)).toMatchObject({
      usage: undefined,
      textBytes: undefined,
      responseBytes: sent.length,
      status: 200,
      upstream: 'forwarded',
    });
  },
);

it('the Lua filter still reads the state of a response in the background', async () => {
  const body = JSON.stringify({ id: 'resp_1', status: 'queued', background: true });
  const [, , finished] = await edge.ask(whole(body), false, '/v1/responses');
  expect((await finished()).response).toEqual({ id: 'resp_1', complete: false, background: true });
});
