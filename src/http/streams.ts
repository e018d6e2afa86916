/** Sends a response in pieces, as fast as the client reads. */

import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import { Refusal } from '../domain/errors.ts';
import { ExportStopped } from '../iam/list/export.ts';
import type { TextStream } from './endpoint.ts';

/**
 * How long a response that breaks off stays open after its last piece, in milliseconds. A proxy that resets an HTTP/2
 * stream drops unread data, and with it the last line, which has the reason.
 */
const LAST_PIECE_MS = 2_000;

/** A response to HEAD needs no piece. */
export function sendStream(stream: TextStream, reply: FastifyReply): FastifyReply {
  reply.type(stream.type);
  if (reply.request.method === 'HEAD') return reply.send();
  const { raw } = reply.hijack();
  raw.statusCode = reply.statusCode;
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) raw.setHeader(name, value);
  void write(stream, raw).catch((error: unknown) => log(error, reply));
  return reply;
}

/** Rejects with the error of a piece, after the response was broken off. */
async function write({ pieces, longestMs }: TextStream, raw: ServerResponse): Promise<void> {
  const longest = setTimeout(() => raw.destroy(), longestMs);
  try {
    for await (const piece of pieces) {
      if (!(await handedOver(raw, piece))) return;
    }
    raw.end();
  } catch (error) {
    // The operating system has every earlier piece and delivers it. Only the end of the response is missing.
    const signal = AbortSignal.timeout(LAST_PIECE_MS);
    if (!raw.destroyed) await once(raw, 'close', { signal }).catch(() => undefined);
    raw.destroy();
    throw error;
  } finally {
    clearTimeout(longest);
  }
}

/** Resolves with true when the operating system has the piece, with false when the connection has closed. */
function handedOver(raw: ServerResponse, piece: string): Promise<boolean> {
  return new Promise((resolve) => {
    const gone = (): void => resolve(false);
    raw.once('close', gone);
    raw.write(piece, (error) => {
      raw.off('close', gone);
      resolve(error === null || error === undefined);
    });
  });
}

/** A caller that is no longer admitted is no error of the server. */
function log(error: unknown, { request }: FastifyReply): void {
  if (error instanceof ExportStopped && (error.reason === 'time_limit' || error.cause instanceof Refusal)) {
    request.log.info({ reqId: request.id, reason: error.reason }, 'an export stopped early');
  } else request.log.error({ err: error, reqId: request.id }, 'an answer broke off');
}
