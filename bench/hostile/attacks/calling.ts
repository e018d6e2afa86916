/** Calls of Postern's HTTP listener on connections that are kept. */

import { Agent, request } from 'node:http';

const TIMEOUT_MS = 30_000;

export interface Answer {
  /** `lost` without an answer. */
  readonly status: number | 'lost';
  readonly body: Readonly<Record<string, unknown>>;
  readonly tookMs: number;
}

export type Call = (
  method: string,
  path: string,
  options?: { readonly as?: string; readonly body?: object },
) => Promise<Answer>;

/** @param http `host:port` */
export function calling(http: string): Call {
  const [host = '', port = ''] = http.split(':');
  const agent = new Agent({ keepAlive: true, timeout: TIMEOUT_MS });
  return (method, path, { as, body } = {}) =>
    new Promise((resolve) => {
      const sentMs = performance.now();
      const done = (status: Answer['status'], text: string): void =>
        resolve({ status, body: asObject(text), tookMs: performance.now() - sentMs });
      const headers = {
        ...(as === undefined ? {} : { authorization: `Bearer ${as}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      };
      const sent = request({ agent, host, port, method, path, headers }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.once('end', () => done(answer.statusCode ?? 'lost', Buffer.concat(chunks).toString()));
        answer.once('error', () => done('lost', ''));
      });
      sent.setTimeout(TIMEOUT_MS, () => sent.destroy());
      sent.once('error', () => done('lost', ''));
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
}

function asObject(text: string): Readonly<Record<string, unknown>> {
  if (!text.startsWith('{')) return {};
  const value: unknown = JSON.parse(text);
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
