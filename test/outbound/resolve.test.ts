/** The resolution of hosts that the operator does not name, against a name server on loopback. */

import { createSocket, type Socket } from 'node:dgram';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fetchBounded } from '../../src/outbound/fetch.ts';
import { resolver } from '../../src/outbound/resolve.ts';

const TYPES = new Map([
  [1, 'A'],
  [28, 'AAAA'],
]);
/** Records by `<host> <type>`. A host that has none does not exist; `silent` is not answered. */
const RECORDS: ReadonlyMap<string, readonly (readonly number[])[]> = new Map([
  ['both.example A', [[192, 0, 2, 7]]],
  ['both.example AAAA', [[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]]],
  [
    'four.example A',
    [
      [8, 8, 8, 8],
      [10, 0, 0, 7],
    ],
  ],
  ['rebound.example A', [[127, 0, 0, 1]]],
]);

let server: Socket;
let resolve: ReturnType<typeof resolver>;
let asked = Promise.withResolvers<void>();

beforeAll(async () => {
  server = createSocket('udp4');
  server.on('message', (query, { port, address }) => {
    const answer = answerTo(query);
    asked.resolve();
    if (answer !== undefined) server.send(answer, port, address);
  });
  await new Promise<void>((ready) => server.bind(0, '127.0.0.1', ready));
  resolve = resolver([`127.0.0.1:${server.address().port}`]);
});
afterAll(() => new Promise<void>((closed) => server.close(closed)));

/** Answers one question (RFC 1035, section 4.1); undefined: not at all. */
function answerTo(query: Buffer): Buffer | undefined {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length).toLowerCase());
    at += length + 1;
  }
  const host = labels.join('.');
  if (host === 'silent.example') return undefined;
  const question = query.subarray(12, at + 5);
  const type = query.readUInt16BE(at + 1);
  const records = RECORDS.get(`${host} ${TYPES.get(type)}`) ?? [];
  const exists = [...RECORDS.keys()].some((key) => key.startsWith(`${host} `));
  const head = Buffer.alloc(12);
  query.copy(head, 0, 0, 2);
  head.writeUInt16BE(exists ? 0x8180 : 0x8183, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(records.length, 6);
  const answers = records.map((data) =>
    Buffer.concat([Buffer.of(0xc0, 12, 0, type, 0, 1, 0, 0, 0, 0, 0, data.length), Buffer.from(data)]),
  );
  return Buffer.concat([head, question, ...answers]);
}

const { signal } = new AbortController();

test('a host has its addresses of both families, and one family suffices', async () => {
  expect(await resolve('both.example', false, signal)).toEqual(['192.0.2.7', '2001:db8::7']);
  expect((await resolve('four.example', false, signal)).toSorted()).toEqual(['10.0.0.7', '8.8.8.8']);
});

test('a host that does not exist has no address, and neither has a name that only the system knows', async () => {
  await expect(resolve('absent.example', false, signal)).rejects.toThrow(/no address/);
  await expect(resolve('only-in-etc-hosts', false, signal)).rejects.toThrow(/no address/);
});

test('the end of a request ends a resolution that is not answered', async () => {
  asked = Promise.withResolvers();
  const stop = new AbortController();
  const resolution = resolve('silent.example', false, stop.signal);
  await asked.promise;
  stop.abort();
  await expect(resolution).rejects.toThrow(/no address/);
});

test.each(['rebound.example', 'four.example'])(
  'a request to %s, which has a private address, is refused',
  async (host) => {
    const outcome = await fetchBounded(`https://${host}/keys`, { allowedHosts: [], resolve });
    expect(outcome).toEqual({ kind: 'failed', reason: expect.stringMatching(/private or reserved/) });
  },
);
