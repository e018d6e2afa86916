/** What a gRPC server writes on a stream besides messages. */

import { constants, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { GrpcFailure } from '../grpc/status.ts';

const OK_HEADERS: OutgoingHttpHeaders = { ':status': 200, 'content-type': 'application/grpc' };
/** The same as a list, which Node neither copies nor adds to. */
const OK_HEADER_LIST = Object.freeze([':status', '200', 'content-type', 'application/grpc']);
const WITH_TRAILERS = { waitForTrailers: true, sendDate: false };
const LAST = { endStream: true, sendDate: false };

export const OK_TRAILERS: OutgoingHttpHeaders = { 'grpc-status': '0' };

export function trailersOf({ status, message }: Pick<GrpcFailure, 'status' | 'message'>): OutgoingHttpHeaders {
  return { 'grpc-status': String(status), 'grpc-message': message };
}

/** Sends the headers of a call whose messages and trailers follow. */
export function openReply(stream: ServerHttp2Stream): void {
  stream.respond(OK_HEADER_LIST, WITH_TRAILERS);
}

/**
 * Ends a call without a message. The server asks a peer that is still sending to stop (RFC 9113, section 8.1) and discards the bytes that
 * are on their way, so a call that is over keeps neither memory nor flow control.
 */
export function fail(stream: ServerHttp2Stream, { status, message }: GrpcFailure): void {
  if (stream.destroyed || stream.closed || stream.headersSent) return;
  stream.respond({ ...OK_HEADERS, ...trailersOf({ status, message }) }, LAST);
  // Later, because a reset overtakes headers that are not written yet.
  if (!stream.readableEnded) setImmediate(stopPeer, stream);
}

function stopPeer(stream: ServerHttp2Stream): void {
  if (!(stream.destroyed || stream.closed || stream.readableEnded)) stream.close(constants.NGHTTP2_NO_ERROR);
}

/** A stream that the peer reset is no error of this server. */
export function ignore(): void {
  // The call is over, and there is nobody to tell.
}
