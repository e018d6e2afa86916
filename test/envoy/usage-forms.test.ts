/** The reader of `envoy/*.yaml` finds the same usage and text in every form of an answer, as each API means them. */

import { once } from 'node:events';
import { request } from 'node:http';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FinishedRequest } from '../../src/extauthz/ports.ts';
import { runs } from '../support/properties.ts';
import { type NaiveUsage, naiveUsage } from './naive-usage.ts';
import { RECORDED, start, text, told } from './recorded-answers.ts';
import { DELTAS, DOCUMENT } from './usage-documents.ts';
import {
  CHAT,
  chat,
  DONE,
  EVENTS,
  event,
  inPieces,
  JSON_TYPE,
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
  it.each(RECORDED)('%s', async (_name, documents, expected) => {
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
