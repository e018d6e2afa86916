/** The failures of calls. https://grpc.io/docs/guides/status-codes/ */

/** The status codes in use, by their names in gRPC's documentation. */
const GRPC_STATUS = {
  ok: 0,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  resourceExhausted: 8,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
} as const;

/** Ends a call without a message. */
export interface GrpcFailure {
  readonly kind: 'failure';
  readonly status: number;
  /** The text for the peer's log: printable ASCII without `%`, so that it needs no escaping. */
  readonly message: string;
}

export function failure(code: keyof typeof GRPC_STATUS, message: string): GrpcFailure {
  return { kind: 'failure', status: GRPC_STATUS[code], message };
}
