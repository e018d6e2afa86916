/** Recognizes the content types of gRPC. https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */

/** The content type that Envoy sends. */
const GRPC_TYPE = 'application/grpc';
/**
 * The server does not support other message encodings than protobuf (`+json`), and not gRPC-web, which frames its
 * answers in another way.
 */
const GRPC = /^application\/grpc(?:\+proto)?[ \t]*(?:;|$)/i;

/**
 * @param contentType `application/grpc` or `application/grpc+proto`, with any parameters, in any case (RFC 9110,
 * section 8.3.1)
 */
export function isGrpc(contentType: string | undefined): boolean {
  return contentType === GRPC_TYPE || (contentType !== undefined && GRPC.test(contentType));
}
