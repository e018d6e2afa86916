/**
 * Every bound of the HTTP/2 transport. `docs/security.md` has the same numbers in its table of cost bounds.
 *
 * Rates are token buckets: so many at once, and then so many for each second. A client that keeps to the protocol stays far below each of
 * them, and so does Envoy, whatever its own clients do.
 */

/** Connections of one process. The listener closes any beyond that at once. */
export const MAX_CONNECTIONS = 4096;
/** SETTINGS_MAX_CONCURRENT_STREAMS; a stream beyond it is refused with REFUSED_STREAM. */
export const MAX_STREAMS = 1024;
/** How much a peer may send on one stream ahead of this server, in bytes. */
export const STREAM_WINDOW = 256 * 1024;
/** The same for a whole connection, in bytes. */
export const CONNECTION_WINDOW = 1024 * 1024;

/** One header block with its CONTINUATION frames, encoded, in bytes; the connection ends beyond it. */
export const MAX_BLOCK_BYTES = 64 * 1024;
/** Frames of one header block; the connection ends beyond it. Full frames of the largest block are four. */
export const MAX_BLOCK_FRAMES = 8;
/** One decoded header list, counted as RFC 9113, section 6.5.2, counts it; the stream is refused beyond it. */
export const MAX_HEADER_LIST_BYTES = 32 * 1024;
/** Header fields of one request; the stream is refused beyond it. */
export const MAX_HEADER_FIELDS = 128;
/** Entries of one SETTINGS frame; the connection ends beyond it. */
export const MAX_SETTINGS = 32;

/**
 * Frames that ask for work and carry none of a request: PING, SETTINGS, PRIORITY, WINDOW_UPDATE, unknown types, empty DATA, and
 * RST_STREAM of closed streams. The connection ends beyond it.
 */
export const CONTROL_FRAMES = { burst: 10_000, perSecond: 2000 };
/** Control frames that each stream and each DATA frame of an answer permits besides: clients ping and open windows while they work. */
export const CONTROL_FRAMES_PER_STREAM = 4;
/** A SETTINGS frame may touch every stream of its connection, so it counts as this many control frames. */
export const SETTINGS_COST = 16;
/**
 * Streams of one method that their peer resets before their answer is sent, on one connection. Beyond it new streams of that method are
 * refused with REFUSED_STREAM; the connection and its other methods go on.
 */
export const RESETS = { burst: 50_000, perSecond: 20_000 };
/** Streams that this server has to reset because of errors in the protocol, on one connection. The connection ends beyond it. */
export const STREAM_ERRORS = { burst: 500, perSecond: 50 };

/**
 * Streams whose header list is too large, on one connection. The connection ends beyond it. Envoy copies a client's `tracestate` and `baggage`
 * into its checks if it traces, and its checks share a connection. The bound is therefore more than the clients of one Envoy can cause.
 */
export const LARGE_HEADS = { burst: 20_000, perSecond: 10_000 };

/** Answers of one connection that wait for its peer's flow control, in bytes; an answer beyond it is cancelled. */
export const MAX_QUEUED_BYTES = 32 * 1024 * 1024;
/** Bytes that wait for the socket before this server stops reading from it. */
export const MAX_BACKLOG_BYTES = 64 * 1024;
/** A peer that takes no byte for so long, while there are bytes for it, is cut. */
export const MAX_STALL_MS = 20_000;
/** From the connection to the peer's acknowledgement of this server's settings, TLS included; the connection is cut beyond it. */
export const MAX_GREETING_MS = 10_000;
/** From GOAWAY with an error to the end of the connection, if its peer does not end it. */
export const MAX_FAREWELL_MS = 1000;
/** A peer that has not answered a ping when the next one is due is cut. */
export const PING_EVERY_MS = 20_000;
