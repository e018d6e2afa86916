/** Methods of a gRPC server and their calls, as a method uses them. Both transports serve the same methods. */

import type { GrpcFailure } from './status.ts';

interface Bounded {
  /** The largest message of the method, in bytes; default: 17 MiB. */
  readonly maxMessageBytes?: number;
}

export type GrpcMethod = Bounded &
  (
    | { readonly kind: 'unary'; readonly answer: UnaryMethod }
    | { readonly kind: 'server-stream'; readonly open: ServerStreamMethod }
    /** The server sends `answer` when the peer has sent its last message. */
    | { readonly kind: 'client-stream'; readonly open: ClientStreamMethod; readonly answer: Buffer }
  );

/** `/package.Service/Method` -> its implementation */
export type GrpcMethods = Readonly<Record<string, GrpcMethod>>;

export type UnaryAnswer = Buffer | GrpcFailure;

/** Releases a reservation. */
export interface Releaser {
  /** Never throws. */
  release(reservation: string): void;
}

/** A unary call, as its method uses it. */
export interface UnaryCall {
  /** The time after which the answer has no use, by the clock of `performance.now()`, in milliseconds. */
  readonly deadlineMs: number;
  /**
   * Sets the listener that is called once if the call ends before its answer; at once if it has ended. Replaces the
   * former listener.
   */
  onCancel(listener: (() => void) | undefined): void;
  /**
   * Releases the reservation once if the answer is not delivered; at once if the call has ended. A call has one
   * reservation.
   */
  releaseUnlessDelivered(releaser: Releaser, reservation: string): void;
}

/** Answers one message. A thrown error or a rejected promise ends the call as `internal`. */
export type UnaryMethod = (message: Buffer, call: UnaryCall) => UnaryAnswer | Promise<UnaryAnswer>;

/** A call to which its method sends any number of messages. */
export interface OpenCall {
  send(message: Buffer): void;
  /** Ends the call with status OK. */
  end(): void;
  /** `gone` is called once, however the call ends. */
  onEnd(gone: () => void): void;
}

/** Takes the message. A returned failure ends the call, and a thrown error ends it as `internal`. */
export type ServerStreamMethod = (message: Buffer, call: OpenCall) => GrpcFailure | undefined;

/** A call with any number of messages. */
export interface IncomingCall {
  /**
   * Sends the answer. The built-in transport still passes on the messages that the peer sends before it receives the
   * end, for at most 10 s.
   */
  end(): void;
  /** `gone` is called once, however the call ends. */
  onEnd(gone: () => void): void;
}

/** Takes one message. A returned failure ends the call, and a thrown error ends it as `internal`. */
export type Receive = (message: Buffer) => GrpcFailure | undefined;

/** Returns the receiver of the messages of one call, or the reason for rejecting the call. */
export type ClientStreamMethod = (call: IncomingCall) => Receive | GrpcFailure;
