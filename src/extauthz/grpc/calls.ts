/**
 * gRPC calls on HTTP/2 streams, answered with as little as the protocol allows: no call object, no promise and no closure for a call
 * whose message comes in one piece and whose answer is there at once.
 */

import type { OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { frame, MessageParts, type Read, readMessage } from './messages.ts';
import { failure, type GrpcFailure } from './status.ts';

export type UnaryAnswer = Buffer | GrpcFailure;

/** What stays of a call that gets more than one message. */
export interface OpenCall {
  send(message: Buffer): void;
  /** The call ends well. */
  end(): void;
  /** `gone` is called once, however the call ends. */
  onEnd(gone: () => void): void;
}

/** A call that brings messages for as long as its peer likes. */
export interface IncomingCall {
  /** Answers now: nothing more is wanted. What the peer sends until it hears of that is still taken. */
  end(): void;
  /** `gone` is called once, however the call ends. */
  onEnd(gone: () => void): void;
}

/** Takes one message; a failure ends the call. A thrown error ends it as `internal`. */
export type Receive = (message: Buffer) => GrpcFailure | undefined;

export type GrpcMethod =
  /** One message in, one out. A thrown error or a rejected promise ends the call as `internal`. */
  | { readonly kind: 'unary'; readonly answer: (message: Buffer) => UnaryAnswer | Promise<UnaryAnswer> }
  /** One message in, any number out, for as long as the call is open. */
  | { readonly kind: 'server-stream'; readonly open: (message: Buffer, call: OpenCall) => GrpcFailure | undefined }
  /** Any number of messages in, one out, when the peer has sent its last. `open` gives what takes the messages of one call. */
  | { readonly kind: 'client-stream'; readonly open: (call: IncomingCall) => Receive | GrpcFailure; readonly answer: Buffer };

/** `/package.Service/Method` -> what answers it */
export type GrpcMethods = Readonly<Record<string, GrpcMethod>>;

type StreamListener = (stream: ServerHttp2Stream) => void;

const OK_HEADERS: OutgoingHttpHeaders = { ':status': 200, 'content-type': 'application/grpc' };
/** The same as a list, which Node neither copies nor adds to. */
const OK_HEADER_LIST = Object.freeze([':status', '200', 'content-type', 'application/grpc']);
const OK_TRAILERS: OutgoingHttpHeaders = { 'grpc-status': '0' };
const WITH_TRAILERS = { waitForTrailers: true, sendDate: false };
const LAST = { endStream: true, sendDate: false };

const NO_MESSAGE = failure('internal', 'the call ended before its message was whole');
const INTERNAL = failure('internal', 'the call could not be answered');

/** Messages that come in pieces, and calls whose answer is being waited for. */
const underWay = new WeakMap<ServerHttp2Stream, MessageParts | 'waiting'>();

/** Makes what is called with each new stream of this method. */
export function listenerOf(method: GrpcMethod): StreamListener {
  if (method.kind === 'client-stream') return clientStream(method.open, method.answer);
  const begin = method.kind === 'unary' ? unary(method.answer) : serverStream(method.open);
  function onData(this: ServerHttp2Stream, chunk: Buffer): void {
    if (this.headersSent || this.destroyed) return;
    const started = underWay.get(this);
    if (started === 'waiting') return;
    const read = started === undefined ? readMessage(chunk) : started.add(chunk);
    proceed(this, chunk, read, started);
  }
  function proceed(stream: ServerHttp2Stream, chunk: Buffer, read: Read, started: MessageParts | undefined): void {
    switch (read.kind) {
      case 'message':
        begin(stream, read.message);
        break;
      case 'failure':
        fail(stream, read);
        break;
      case 'more':
        if (started === undefined) underWay.set(stream, pieces(chunk));
        break;
      default:
        read satisfies never;
    }
  }
  return (stream) => {
    stream.on('error', ignore);
    stream.on('data', onData);
    stream.on('end', onEnd);
  };
}

function pieces(first: Buffer): MessageParts {
  const parts = new MessageParts();
  parts.add(first);
  return parts;
}

/** Ends a call without a message. What the peer still sends is thrown away. */
export function fail(stream: ServerHttp2Stream, { status, message }: GrpcFailure): void {
  if (stream.destroyed || stream.closed || stream.headersSent) return;
  stream.respond({ ...OK_HEADERS, ...trailersOf({ status, message }) }, LAST);
}

function trailersOf({ status, message }: Pick<GrpcFailure, 'status' | 'message'>): OutgoingHttpHeaders {
  return { 'grpc-status': String(status), 'grpc-message': message };
}

/** A stream that the peer reset is no error of this server. */
export function ignore(): void {
  // The call is over, and there is nobody to tell.
}

function onEnd(this: ServerHttp2Stream): void {
  if (!this.headersSent && underWay.get(this) !== 'waiting') fail(this, NO_MESSAGE);
}

function sendTrailers(this: ServerHttp2Stream): void {
  this.sendTrailers(OK_TRAILERS);
}

function open(stream: ServerHttp2Stream): void {
  stream.on('wantTrailers', sendTrailers);
  stream.respond(OK_HEADER_LIST, WITH_TRAILERS);
}

function unary(answer: (message: Buffer) => UnaryAnswer | Promise<UnaryAnswer>) {
  return (stream: ServerHttp2Stream, message: Buffer): void => {
    try {
      const result = answer(message);
      if (result instanceof Promise) {
        underWay.set(stream, 'waiting');
        result.then(
          (value) => reply(stream, value),
          () => fail(stream, INTERNAL),
        );
      } else {
        reply(stream, result);
      }
    } catch {
      fail(stream, INTERNAL);
    }
  };
}

function reply(stream: ServerHttp2Stream, answer: UnaryAnswer): void {
  if (!(answer instanceof Uint8Array)) {
    fail(stream, answer);
  } else if (!(stream.destroyed || stream.closed || stream.headersSent)) {
    open(stream);
    stream.end(frame(answer));
  }
}

function serverStream(begin: (message: Buffer, call: OpenCall) => GrpcFailure | undefined) {
  return (stream: ServerHttp2Stream, message: Buffer): void => {
    const call: OpenCall = {
      send: (bytes) => {
        if (stream.destroyed || stream.closed || stream.writableEnded) return;
        if (!stream.headersSent) open(stream);
        stream.write(frame(bytes));
      },
      end: () => {
        if (stream.destroyed || stream.closed || stream.writableEnded) return;
        if (!stream.headersSent) open(stream);
        stream.end();
      },
      onEnd: (gone) => stream.once('close', gone),
    };
    const refused = begin(message, call);
    if (refused !== undefined) fail(stream, refused);
    else if (!stream.headersSent) open(stream);
  };
}

function clientStream(begin: (call: IncomingCall) => Receive | GrpcFailure, answer: Buffer): StreamListener {
  return (stream) => {
    stream.on('error', ignore);
    const parts = new MessageParts();
    let outcome: OutgoingHttpHeaders = OK_TRAILERS;
    let over = false;
    const end = (failed?: GrpcFailure): void => {
      if (stream.destroyed || stream.closed || stream.writableEnded) return;
      if (failed === undefined) {
        stream.end(frame(answer));
      } else {
        // What the peer still sends is thrown away. Not closed: Node 26 aborts the process when a stream is that has trailers to send.
        over = true;
        outcome = trailersOf(failed);
        stream.end();
      }
    };
    const receive = begin({ end: () => end(), onEnd: (gone) => stream.once('close', gone) });
    if (typeof receive !== 'function') return fail(stream, receive);
    stream.on('wantTrailers', () => stream.sendTrailers(outcome));
    // At once, so that the peer knows the call to be established.
    stream.respond(OK_HEADER_LIST, WITH_TRAILERS);
    stream.on('data', (chunk: Buffer) => {
      if (over) return;
      const failed = takeAll(parts, chunk, receive);
      if (failed !== undefined) end(failed);
    });
    stream.on('end', () => end(parts.empty ? undefined : NO_MESSAGE));
  };
}

function takeAll(parts: MessageParts, chunk: Buffer, receive: Receive): GrpcFailure | undefined {
  try {
    return parts.split(chunk, receive);
  } catch {
    return INTERNAL;
  }
}
