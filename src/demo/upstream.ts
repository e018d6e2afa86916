/**
 * A stand-in for the AI platform behind Envoy. It answers every route of the platform in the shapes of the OpenAI API,
 * returns the received headers in `x_echo`, and keeps a ledger of the usage that it reported (`GET /ledger`, on its own
 * address). It decides nothing.
 */

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { answer, type DemoAnswer, type Metered } from './answers.ts';
import { faultOf, longModelOf, type UpstreamFault } from './faults.ts';
import { createLedger, type Ledger } from './ledger.ts';
import { type DemoRequest, readRequest } from './request.ts';

export interface Upstream {
  readonly host: string;
  readonly port: number;
  /** Ends open streams as well. */
  close(): Promise<void>;
}

/** Rejects with Node's error if it cannot listen. Port 0 = any free port. */
export async function startUpstream(host: string, port: number): Promise<Upstream> {
  const ledger = createLedger();
  const server = createServer((message, reply) => {
    serve(ledger, message, reply).catch(() => reply.destroy());
  });
  // Longer than Envoy keeps its connections, so that Envoy does not use a closed one.
  server.keepAliveTimeout = 120_000;
  server.listen(port, host);
  await once(server, 'listening');
  return { host, port: portOf(server), close: () => closeServer(server) };
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}

async function serve(ledger: Ledger, message: IncomingMessage, reply: ServerResponse): Promise<void> {
  const request = await readRequest(message);
  if (request === undefined) {
    sendJson(reply, undefined, 413, { error: { message: 'The stand-in upstream takes no body of this length.' } });
    return;
  }
  if (request.method === 'GET' && request.path === '/ledger') {
    sendJson(reply, request, 200, { ...ledger.report() });
    return;
  }
  const fault = faultOf(request.headers['x-demo']);
  if (fault?.kind === 'status') {
    sendJson(reply, request, fault.status, { error: { message: 'As asked for in x-demo.', type: 'server_error' } });
    return;
  }
  const model = longModelOf(request.headers['x-demo']);
  const asked = model === undefined ? request : { ...request, body: { ...request.body, model } };
  const made = answer(asked, { nowMs: Date.now(), id: randomBytes(12).toString('hex') });
  const echo = { x_echo: request.headers };
  const note = (metered: Metered | undefined): void => {
    if (metered !== undefined) record(ledger, request, made, metered);
  };
  switch (made.kind) {
    case 'json':
      if (fault === undefined) note(made.metered);
      sendJson(reply, request, 200, { ...made.body, ...echo }, fault);
      return;
    case 'events':
      if (await sendEvents(reply, made.events, echo, fault)) note(made.metered);
      return;
    default:
      made satisfies never;
  }
}

function record(ledger: Ledger, request: DemoRequest, made: DemoAnswer, metered: Metered): void {
  ledger.record({
    time: new Date().toISOString(),
    id: metered.id,
    path: request.path,
    model: metered.model,
    stream: made.kind === 'events',
    tenant: request.headers['x-postern-tenant'] ?? null,
    subject: request.headers['x-postern-subject'] ?? null,
    ...metered.usage,
  });
}

type Break = Exclude<UpstreamFault, { kind: 'status' }>;

function sendJson(
  reply: ServerResponse,
  request: DemoRequest | undefined,
  status: number,
  body: object,
  fault?: Break | undefined,
): void {
  const plain = Buffer.from(`${JSON.stringify(body)}\n`);
  const packed = /\bgzip\b/.test(request?.headers['accept-encoding'] ?? '');
  const bytes = packed ? gzipSync(plain) : plain;
  reply.writeHead(status, {
    'content-type': 'application/json',
    'content-length': bytes.length,
    ...(packed ? { 'content-encoding': 'gzip' } : {}),
    ...(status === 413 ? { connection: 'close' } : {}),
  });
  if (fault === undefined) reply.end(request?.method === 'HEAD' ? undefined : bytes);
  else if (fault.after === 0) breakOff(reply, fault);
  else reply.write(bytes.subarray(0, fault.after), () => breakOff(reply, fault));
}

/** After `hang`, only the client ends the connection. */
function breakOff(reply: ServerResponse, { kind }: Break): void {
  if (kind === 'close') reply.destroy();
}

/** Adds the echo to the first event. Resolves with true if the client received all events. */
async function sendEvents(
  reply: ServerResponse,
  events: readonly string[],
  echo: object,
  fault: Break | undefined,
): Promise<boolean> {
  reply.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  for (const [index, event] of events.entries()) {
    if (reply.destroyed) return false;
    if (fault !== undefined && index >= fault.after) {
      // The callback runs after the earlier writes.
      reply.write('', () => breakOff(reply, fault));
      return false;
    }
    const text = index === 0 ? event.replace(/\}\n\n$/, `,${JSON.stringify(echo).slice(1)}\n\n`) : event;
    if (!reply.write(text)) await Promise.race([once(reply, 'drain'), once(reply, 'close')]);
  }
  if (reply.destroyed) return false;
  reply.end();
  return true;
}
