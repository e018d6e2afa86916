/**
 * Every bound of the HTTP/2 transport. `docs/security.md` has the same numbers in its table of cost bounds.
 *
 * Rates are token buckets with a burst and a number per second. A client that follows the protocol stays far below each
 * of them, and so does Envoy, independent of its clients.
 */

/** Connections of one process. The listener closes any beyond that at once. */
export const MAX_CONNECTIONS = 4096;
/** SETTINGS_MAX_CONCURRENT_STREAMS; a stream beyond it is refused with REFUSED_STREAM. */
export const MAX_STREAMS = 1024;
/** The bytes that a peer may send on one stream before this server reads them. */
export const STREAM_WINDOW = 256 * 1024;
/** The same for a connection, in bytes. */
export const CONNECTION_WINDOW = 1024 * 1024;

/** The encoded bytes of one header block with its CONTINUATION frames. The connection ends beyond it. */
export const MAX_BLOCK_BYTES = 64 * 1024;
/** The frames of one header block. The connection ends beyond it. The largest block has four full frames. */
export const MAX_BLOCK_FRAMES = 8;
/** The size of one decoded header list (RFC 9113, section 6.5.2). The stream is refused beyond it. */
export const MAX_HEADER_LIST_BYTES = 32 * 1024;
/** Header fields of one request; the stream is refused beyond it. */
export const MAX_HEADER_FIELDS = 128;
/** Entries of one SETTINGS frame; the connection ends beyond it. */
export const MAX_SETTINGS = 32;

/**
 * Frames that cause work and carry no part of a request: PING, SETTINGS, PRIORITY, WINDOW_UPDATE, unknown types, empty
 * DATA, and RST_STREAM of closed streams. The connection ends beyond the bound.
 */
export const CONTROL_FRAMES = { burst: 10_000, perSecond: 2000 };
/**
 * The additional control frames that each stream and each DATA frame of an answer permits, because clients ping and
 * open windows while they work.
 */
export const CONTROL_FRAMES_PER_STREAM = 4;
/** A SETTINGS frame may affect every stream of its connection, so it counts as 16 control frames. */
export const SETTINGS_COST = 16;
/**
 * Streams of one method that their peer resets before their answer is sent, on one connection. Beyond it, the server
 * refuses new streams of that method with REFUSED_STREAM. The connection and its other methods continue.
 */
export const RESETS = { burst: 50_000, perSecond: 20_000 };
/** Streams that this server resets because of protocol errors, on one connection. The connection ends beyond it. */
export const STREAM_ERRORS = { burst: 500, perSecond: 50 };

/**
 * Streams whose header list is too large, on one connection. The connection ends beyond it. If Envoy traces, it copies
 * a client's `tracestate` and `baggage` into its checks, which share a connection. The bound is therefore more than the
 * clients of one Envoy can cause.
 */
export const LARGE_HEADS = { burst: 20_000, perSecond: 10_000 };

/**
 * The bytes of answers that wait for the peer's flow control, on one connection. The server cancels an answer beyond
 * it.
 */
export const MAX_QUEUED_BYTES = 32 * 1024 * 1024;
/** The bytes that wait for the socket. Beyond it, the server stops reading from the socket. */
export const MAX_BACKLOG_BYTES = 64 * 1024;
/** The server cuts a peer that reads no byte for this time while there are bytes for it. */
export const MAX_STALL_MS = 20_000;
/**
 * The time from the connection to the peer's acknowledgement of this server's settings, including TLS. The server cuts
 * the connection beyond it.
 */
export const MAX_GREETING_MS = 10_000;
/** The time from GOAWAY with an error to the end of the connection, if the peer does not end it. */
export const MAX_FAREWELL_MS = 1000;
/** The server cuts a peer that has not answered a ping when the next one is due. */
export const PING_EVERY_MS = 20_000;
