/** Envoy's `x-request-id`, as two reports of one request are compared by it. */

/** Longer than a UUID, and than most ids that clients choose. */
const SHARED = /^[\x21-\x7e]{1,128}$/;

/** Returns the id if it is short and printable ASCII, so that every report of the request has the same text. */
export function sharedRequestId(id: string | undefined): string | undefined {
  return id !== undefined && SHARED.test(id) ? id : undefined;
}
