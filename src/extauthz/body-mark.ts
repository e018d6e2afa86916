/**
 * The mark by which Envoy's configuration says of a route that the body of its requests is not sent: an entry of `context_extensions`, which
 * no client can set. Without it, a request without Content-Length on such a route looks like one with an empty body.
 */

export const BODY_MARK_NAME = 'postern.body';
export const BODY_NOT_SENT_VALUE = 'not_sent';

export const BODY_MARK = Buffer.from(BODY_MARK_NAME);
export const BODY_NOT_SENT = Buffer.from(BODY_NOT_SENT_VALUE);
