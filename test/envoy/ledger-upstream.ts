/**
 * An upstream that reports the usage which the request asks it to report, in the forms of the APIs of OpenAI and
 * Anthropic, and keeps a ledger of it.
 */

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Upstream } from '../../src/demo/upstream.ts';

/** The usage of one answer, in the header `x-usage` of its request. `prompt` contains `cached` and `written`. */
export interface Spent {
  readonly prompt: number;
  readonly completion: number;
  readonly cached?: number;
  readonly written?: number;
}

export interface LedgerLine extends Required<Spent> {
  readonly tenant: string;
  /** The user, or the owner of the key; empty = none. */
  readonly user: string;
  readonly subject: string;
  readonly model: string;
}

export interface LedgerUpstream extends Upstream {
  /** One line for each answer that reported its usage. */
  readonly ledger: LedgerLine[];
  /** Requests that wait for `release`, because they have the header `x-hold`. */
  readonly held: number;
  release(): void;
}

export async function startLedgerUpstream(): Promise<LedgerUpstream> {
  const ledger: LedgerLine[] = [];
  const waiting: (() => void)[] = [];
  const server = createServer((message, reply) => {
    serve(message, reply).catch(() => reply.destroy());
  });

  async function serve(message: IncomingMessage, reply: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of message) chunks.push(chunk);
    const { model = 'none', stream = false }: { model?: string; stream?: boolean } = JSON.parse(
      Buffer.concat(chunks).toString(),
    );
    const told = message.headers['x-usage'];
    const spent: Spent | undefined = typeof told === 'string' ? JSON.parse(told) : undefined;
    if (message.headers['x-hold'] !== undefined) await new Promise<void>((resolve) => waiting.push(resolve));
    const of = (name: string): string => String(message.headers[name] ?? '');
    const answer = message.url === '/v1/messages' ? messageOf(spent) : completionOf(spent);
    if (spent !== undefined) {
      const { prompt, completion, cached = 0, written = 0 } = spent;
      const [tenant, user, subject] = [of('x-postern-tenant'), of('x-postern-user-id'), of('x-postern-subject')];
      ledger.push({ tenant, user, subject, model, prompt, completion, cached, written });
    }
    if (!stream) {
      reply.setHeader('content-type', 'application/json');
      reply.end(JSON.stringify({ ...answer.at(-1), model }));
      return;
    }
    reply.setHeader('content-type', 'text/event-stream');
    reply.write('data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n');
    // The client leaves such a stream.
    if (message.headers['x-hang'] !== undefined) return;
    for (const event of answer) reply.write(`data: ${JSON.stringify({ ...event, model })}\n\n`);
    reply.end('data: [DONE]\n\n');
  }

  server.keepAliveTimeout = 120_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    ledger,
    host: '127.0.0.1',
    port: typeof address === 'object' && address !== null ? address.port : 0,
    get held() {
      return waiting.length;
    },
    release() {
      for (const go of waiting.splice(0)) go();
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** The events of a stream; the last one is the answer that is no stream. */
function completionOf(spent: Spent | undefined): readonly object[] {
  const choices = [{ index: 0, message: { role: 'assistant', content: 'Hello' } }];
  if (spent === undefined) return [{ choices }];
  const { prompt, completion, cached = 0 } = spent;
  const usage = {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: cached },
  };
  return [{ choices, usage }];
}

/** Anthropic reports the tokens of the cache apart from `input_tokens`, and the answer's in the last event of a stream. */
function messageOf(spent: Spent | undefined): readonly object[] {
  const content = [{ type: 'text', text: 'Hello' }];
  if (spent === undefined) return [{ type: 'message', content }];
  const { prompt, completion, cached = 0, written = 0 } = spent;
  const usage = {
    input_tokens: prompt - cached - written,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: written,
    output_tokens: completion,
  };
  return [
    { type: 'message_start', message: { usage: { ...usage, output_tokens: 1 } } },
    { type: 'message', content, usage },
  ];
}
