/** A real Envoy before an upstream whose answers a test chooses, with the reports that Postern receives. */

import type { ServerResponse } from 'node:http';
import type { FinishedRequest } from '../../src/extauthz/ports.ts';
import type { EditConfig } from '../support/envoy.ts';
import { type Answer, send, startServer } from '../support/http.ts';
import { type MeteredEdge, startMeteredEdge } from '../support/metered-edge.ts';

export type Reply = (outgoing: ServerResponse) => void | Promise<void>;
type Asked = [answer: Answer, usage: () => Promise<FinishedRequest['usage']>, finished: () => Promise<FinishedRequest>];

export interface UsageEdge {
  readonly metered: MeteredEdge;
  /** Prepares an answer, and returns the model whose request gets it. */
  prepare(reply: Reply): string;
  /** Requests an answer, by default to a chat, and returns it with the report of its request. */
  ask(reply: Reply, binary?: boolean, path?: string): Promise<Asked>;
  stop(): Promise<void>;
}

/** @param edit changes Envoy's configuration */
export async function startUsageEdge(edit?: EditConfig): Promise<UsageEdge> {
  /** The replies by the requested model. */
  const replies = new Map<string, Reply>();
  const upstream = await startServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const { model } = JSON.parse(Buffer.concat(chunks).toString());
    await replies.get(model)?.(outgoing);
  });
  const metered = await startMeteredEdge(upstream.address, edit === undefined ? {} : { edit });
  const prepare = (reply: Reply): string => {
    const model = `case-${replies.size}`;
    replies.set(model, reply);
    return model;
  };
  return {
    metered,
    prepare,
    async ask(reply, binary = false, path = '/v1/chat/completions') {
      const model = prepare(reply);
      const headers = { authorization: `Bearer ${metered.world.userToken}`, 'content-type': 'application/json' };
      const call = { method: 'POST', path, headers, body: JSON.stringify({ model }), binary };
      const answer = await send(metered.edge.url, call);
      const finished = () => metered.finished(model);
      return [answer, async () => (await finished()).usage, finished];
    },
    async stop() {
      await metered.stop();
      upstream.close();
    },
  };
}

export const JSON_TYPE = { 'content-type': 'application/json' };
export const EVENTS = { 'content-type': 'text/event-stream; charset=utf-8' };

/** Its length is announced. */
export const whole =
  (body: string | Buffer, headers: Readonly<Record<string, string>> = JSON_TYPE): Reply =>
  (outgoing) =>
    void outgoing.writeHead(200, { 'content-length': Buffer.byteLength(body), ...headers }).end(body);

/** Its length is not; every piece goes out by itself. */
export const inPieces =
  (pieces: readonly (string | Buffer)[], headers: Readonly<Record<string, string>> = JSON_TYPE): Reply =>
  async (outgoing) => {
    outgoing.writeHead(200, headers);
    for (const piece of pieces) await new Promise((resolve) => outgoing.write(piece, resolve));
    outgoing.end();
  };

export const usageOf = (prompt: number, completion: number, cached = 0, model = 'm-2') => ({
  prompt,
  completion,
  cached,
  cacheWrite: 0,
  total: prompt + completion,
  model,
});
export const CHAT = {
  prompt_tokens: 11,
  completion_tokens: 22,
  total_tokens: 33,
  prompt_tokens_details: { cached_tokens: 4 },
};
export const RESPONSE = {
  input_tokens: 11,
  output_tokens: 22,
  total_tokens: 33,
  input_tokens_details: { cached_tokens: 4 },
};
export const chat = (usage: unknown, choices: unknown = []): string =>
  JSON.stringify({ id: 'x', model: 'm-2', choices, usage, after: [] });

export const event = (data: unknown, end = '\n'): string =>
  `data: ${typeof data === 'string' ? data : JSON.stringify(data)}${end}${end}`;
export const DONE = event('[DONE]');
