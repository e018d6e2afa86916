/** Which content types are gRPC. https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */

/** Envoy sends this one. */
const GRPC_TYPE = 'application/grpc';
/** A message encoding other than protobuf (`+json`), and gRPC-web, which frames its answers in another way, are not served here. */
const GRPC = /^application\/grpc(?:\+proto)?[ \t]*(?:;|$)/i;

/** @param contentType `application/grpc` or `application/grpc+proto`, with any parameters; media types ignore case (RFC 9110, section 8.3.1) */
export function isGrpc(contentType: string | undefined): boolean {
  return contentType === GRPC_TYPE || (contentType !== undefined && GRPC.test(contentType));
}
