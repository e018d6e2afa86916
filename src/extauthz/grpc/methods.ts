/** Methods of a gRPC server and their calls, as a method sees them. Every transport serves the same ones. */

import type { GrpcFailure } from './status.ts';

interface Bounded {
  /** The largest message that the method takes, in bytes; default: 17 MiB. */
  readonly maxMessageBytes?: number;
}

export type GrpcMethod = Bounded &
  (
    | { readonly kind: 'unary'; readonly answer: UnaryMethod }
    | { readonly kind: 'server-stream'; readonly open: ServerStreamMethod }
    /** `answer` is sent when the peer has sent its last message. */
    | { readonly kind: 'client-stream'; readonly open: ClientStreamMethod; readonly answer: Buffer }
  );

/** `/package.Service/Method` -> its implementation */
export type GrpcMethods = Readonly<Record<string, GrpcMethod>>;

export type UnaryAnswer = Buffer | GrpcFailure;

/** Takes back what an answer granted. */
export interface Releaser {
  /** Never throws. */
  release(reservation: string): void;
}

/** A unary call, as its method sees it. */
export interface UnaryCall {
  /** The time after which the answer is of no use, by the clock of `performance.now()`, in milliseconds. */
  readonly deadlineMs: number;
  /** Sets what is called once when the call is over before it was answered; at once if it is. Replaces the listener before. */
  onCancel(listener: (() => void) | undefined): void;
  /** Releases the reservation once if the answer is not delivered; at once if the call is over. One reservation for each call. */
  releaseUnlessDelivered(releaser: Releaser, reservation: string): void;
}

/** Answers one message. A thrown error or a rejected promise ends the call as `internal`. */
export type UnaryMethod = (message: Buffer, call: UnaryCall) => UnaryAnswer | Promise<UnaryAnswer>;

/** The part of a call that a method keeps to send more than one message. */
export interface OpenCall {
  send(message: Buffer): void;
  /** The call ends well. */
  end(): void;
  /** `gone` is called once, however the call ends. */
  onEnd(gone: () => void): void;
}

/** Takes the one message; a failure ends the call. A thrown error ends it as `internal`. */
export type ServerStreamMethod = (message: Buffer, call: OpenCall) => GrpcFailure | undefined;

/** A call that brings messages for as long as its peer likes. */
export interface IncomingCall {
  /** Answers now: nothing more is wanted. Messages that the peer sends until it hears of that are still taken, for 10 s at most. */
  end(): void;
  /** `gone` is called once, however the call ends. */
  onEnd(gone: () => void): void;
}

/** Takes one message; a failure ends the call. A thrown error ends it as `internal`. */
export type Receive = (message: Buffer) => GrpcFailure | undefined;

/** Returns what takes the messages of one call, or why the call is refused. */
export type ClientStreamMethod = (call: IncomingCall) => Receive | GrpcFailure;
