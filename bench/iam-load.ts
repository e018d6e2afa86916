/**
 * Sends HTTP requests to one server over connections that stay open, each waiting for the answer before it sends the
 * next, and tells how long they took. A process of its own, so that it has a core of its own; it writes and reads bytes
 * alone, so that the server is what is measured. The job comes on standard input as JSON, the result goes to standard
 * output.
 */

import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { quantile } from './stack.ts';

export interface LoadRequest {
  readonly method: string;
  readonly path: string;
  readonly token?: string;
  readonly tenant?: string;
  /** JSON text. `{n}` in it, and in the path, becomes a number that is never used again. */
  readonly body?: string;
}

export interface Job {
  /** `host:port` */
  readonly address: string;
  readonly connections: number;
  /** Sent before anything is measured. */
  readonly warm: number;
  readonly calls: number;
  /** Sent in turn, over and over. */
  readonly requests: readonly LoadRequest[];
  /** Where `{n}` begins. */
  readonly from: number;
}

export interface HttpLoadResult {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of every call, in the order of their answers. */
  readonly latenciesMs: readonly number[];
  readonly statuses: Readonly<Record<string, number>>;
}

const NUMBER = '{n}';

function encode({ method, path, token, tenant, body }: LoadRequest, n: number): string {
  const json = body?.replaceAll(NUMBER, String(n));
  const lines = [
    `${method} ${path.replaceAll(NUMBER, String(n))} HTTP/1.1`,
    'host: bench',
    ...(token === undefined ? [] : [`authorization: Bearer ${token}`]),
    ...(tenant === undefined ? [] : [`x-tenant-id: ${tenant}`]),
    ...(json === undefined ? [] : ['content-type: application/json', `content-length: ${Buffer.byteLength(json)}`]),
  ];
  return `${lines.join('\r\n')}\r\n\r\n${json ?? ''}`;
}

/** The length of the answer at the start of the bytes, and its status; undefined while more of it is to come. */
function answerIn(bytes: Buffer): { readonly length: number; readonly status: string } | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const head = bytes.toString('latin1', 0, end).toLowerCase();
  const status = head.slice(9, 12);
  const length = end + 4 + Number(/\r\ncontent-length: (\d+)/.exec(head)?.[1] ?? 0);
  if (/\r\ntransfer-encoding:/.test(head)) throw new Error('a chunked answer');
  return bytes.length < length ? undefined : { length, status };
}

async function run(job: Job): Promise<HttpLoadResult> {
  const [host, port] = job.address.split(':');
  const statuses: Record<string, number> = {};
  const latencies: number[] = [];
  const fixed = job.requests.map((request) =>
    `${request.path}${request.body ?? ''}`.includes(NUMBER) ? undefined : encode(request, 0),
  );
  let sent = 0;
  let measuredFrom = 0;
  const connection = (): Promise<void> =>
    new Promise((done, fail) => {
      const socket = connect(Number(port), host);
      socket.setNoDelay(true);
      let held: Buffer = Buffer.alloc(0);
      let startedAt = 0;
      let measured = false;
      const next = (): void => {
        if (sent >= job.warm + job.calls) {
          socket.end();
          done();
          return;
        }
        const n = sent++;
        if (n === job.warm) measuredFrom = performance.now();
        measured = n >= job.warm;
        const i = n % job.requests.length;
        const request = job.requests[i];
        if (request === undefined) throw new Error('a job without requests');
        startedAt = performance.now();
        socket.write(fixed[i] ?? encode(request, job.from + n), 'latin1');
      };
      socket.on('data', (chunk: Buffer) => {
        held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
        const answer = answerIn(held);
        if (answer === undefined) return;
        held = held.subarray(answer.length);
        if (measured) {
          latencies.push(performance.now() - startedAt);
          statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
        }
        next();
      });
      socket.once('connect', next);
      socket.once('error', fail);
      socket.once('close', () => done());
    });
  await Promise.all(Array.from({ length: job.connections }, connection));
  const seconds = (performance.now() - measuredFrom) / 1000;
  return {
    perSecond: latencies.length / seconds,
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
    latenciesMs: latencies,
    statuses,
  };
}

if (process.argv[1] === import.meta.filename) {
  console.log(JSON.stringify(await run(JSON.parse(await text(process.stdin)) as Job)));
}
