/**
 * The bytes of an allow, with holes where two requests of the same shape differ: ids, the tenant, the model, numbers.
 * Copying the bytes and filling the holes costs a fraction of writing the answer field by field.
 */

import type { Principal, Route } from '../decision/model.ts';
import { mapMembers } from '../domain/objects.ts';
import {
  encodeHeaderText,
  headerName,
  putHeader,
  putHeaderHole,
  putListHeader,
  putResponseHeaderHole,
} from './header-options.ts';
import { MEMBER, putMember, putMemberHole, putWords, wrapMetadata } from './metadata.ts';
import * as Own from './own-headers.ts';
import { beginWriting, finishWriting, putBytes, wrap } from './wire-write.ts';

/** The properties that determine which fields an answer has and how long each is. Lengths are in bytes. */
export interface Shape {
  readonly kind: Principal['kind'];
  readonly route: Route;
  readonly roles: readonly string[];
  readonly subjectLength: number;
  /** Undefined if the principal is no user and has no owner. */
  readonly userLength: number | undefined;
  readonly tenantLength: number;
  readonly requestIdLength: number;
  /** The length of the model in the metadata; undefined = none. */
  readonly modelLength: number | undefined;
  /** The number of digits of the token limit; undefined = none. */
  readonly maxTokensLength: number | undefined;
  /** The length of the reservation id; undefined = nothing is settled. */
  readonly reservationLength: number | undefined;
  /** Whether the answer also has the request id header that Anthropic's SDKs read. */
  readonly isMessages: boolean;
  readonly defaultModel: string | undefined;
  /** Whether the answer also gets the header with the token for the upstream. */
  readonly hasToken: boolean;
  /** Whether the check had every other spelling of guarded headers that the request has. */
  readonly hasAllAliases: boolean;
  /** The encoded headers that this request requires to remove, besides the prepared ones. */
  readonly seen: Buffer;
}

export type Template = ReturnType<typeof makeTemplate>;

/** The offset of a hole that the shape does not have. */
export const NO_HOLE = -1;

const REQUEST_ID = headerName('x-request-id');
const ANTHROPIC_REQUEST_ID = headerName('request-id');

/** The length of the id of a request without a reservation: 128 bits in hexadecimal. */
export const PLAIN_RESERVATION_LENGTH = 32;
/** CheckResponse.status = 1, google.rpc.Status.code = 1: OK. */
export const STATUS_OK = Buffer.from([0x0a, 0x02, 0x08, 0x00]);
/** The offset of the metadata, which follows the status. */
export const METADATA_AT = STATUS_OK.length;
/** CheckResponse.ok_response = 3 */
export const OK_RESPONSE = 0x1a;
/** Room for the parts of an answer that have a bound of their own: names, ids, tenant, tags and lengths. */
export const FIXED_BYTES = 6144;

/** Returns the bytes, and the offset of each hole in them. */
export function makeTemplate(shape: Shape, removals: Own.Removals) {
  const { kind, route, roles, userLength, maxTokensLength, defaultModel, seen } = shape;
  const removed = removals({
    userId: userLength !== undefined,
    roles: roles.length > 0,
    maxTokens: maxTokensLength !== undefined,
    defaultModel: defaultModel !== undefined,
    token: shape.hasToken,
    hasAllAliases: shape.hasAllAliases,
    metered: route.tokens || route.reportsUsage || route.readsResponse,
  });
  const rolesLength = roles.reduce((length, role) => length + role.length + 1, 0);
  const routeLength = 3 * (route.method.length + route.template.length);
  // Each character of a default model may become three bytes, each encoded as three characters.
  const writer = beginWriting(FIXED_BYTES + seen.length + routeLength + rolesLength + 9 * (defaultModel?.length ?? 0));

  // The last field of the answer, so that a token can follow its other members.
  const okEnd = writer.at;
  // This header is added to the upstream's answer, because clients report its id. Envoy's own id stays in the request.
  const requestIdHeader = putResponseHeaderHole(writer, REQUEST_ID, shape.requestIdLength);
  const anthropicRequestIdHeader = shape.isMessages
    ? putResponseHeaderHole(writer, ANTHROPIC_REQUEST_ID, shape.requestIdLength)
    : undefined;
  putBytes(writer, seen);
  putBytes(writer, removed);
  if (defaultModel !== undefined)
    putHeader(writer, Own.ENCODED_NAME[Own.DEFAULT_MODEL], encodeHeaderText(defaultModel));
  const maxTokensHeader =
    maxTokensLength === undefined
      ? undefined
      : putHeaderHole(writer, Own.ENCODED_NAME[Own.MAX_TOKENS], maxTokensLength);
  if (roles.length > 0) putListHeader(writer, Own.ENCODED_NAME[Own.ROLES], roles);
  const tenantIdHeader = putHeaderHole(writer, Own.ENCODED_NAME[Own.TENANT_ID_HEADER], shape.tenantLength);
  const tenantHeader = putHeaderHole(writer, Own.ENCODED_NAME[Own.TENANT_HEADER], shape.tenantLength);
  const userHeader =
    userLength === undefined ? undefined : putHeaderHole(writer, Own.ENCODED_NAME[Own.USER_ID], userLength);
  putHeader(writer, Own.ENCODED_NAME[Own.SUBJECT_TYPE], kind);
  const subjectHeader = putHeaderHole(writer, Own.ENCODED_NAME[Own.SUBJECT], shape.subjectLength);
  wrap(writer, OK_RESPONSE, okEnd);
  const okAt = writer.at;

  const { reservationLength } = shape;
  // Envoy reports the end of a request only if this member is present: see the access logger in `envoy/*.yaml`.
  if (reservationLength !== undefined) putMember(writer, MEMBER.settles, 'true');
  const reservationMember = putMemberHole(writer, MEMBER.reservation, reservationLength ?? PLAIN_RESERVATION_LENGTH);
  const requestIdMember = putMemberHole(writer, MEMBER.request_id, shape.requestIdLength);
  const { modelLength } = shape;
  const modelMember = modelLength === undefined ? undefined : putMemberHole(writer, MEMBER.model, modelLength);
  putWords(writer, MEMBER.route, route.method, route.template);
  const userMember = userLength === undefined ? undefined : putMemberHole(writer, MEMBER.user, userLength);
  const keyMember = kind === 'api_key' ? putMemberHole(writer, MEMBER.key, shape.subjectLength) : undefined;
  const tenantMember = putMemberHole(writer, MEMBER.tenant, shape.tenantLength);
  putMember(writer, MEMBER.subject_type, kind);
  const subjectMember = putMemberHole(writer, MEMBER.subject, shape.subjectLength);
  wrapMetadata(writer, okAt);
  putBytes(writer, STATUS_OK);

  const offset = (at: number | undefined): number => (at === undefined ? NO_HOLE : at - writer.at);
  const offsets = mapMembers(
    {
      subjectHeader,
      subjectMember,
      keyMember,
      userHeader,
      userMember,
      tenantHeader,
      tenantIdHeader,
      tenantMember,
      maxTokensHeader,
      modelMember,
      requestIdMember,
      requestIdHeader,
      anthropicRequestIdHeader,
      reservationMember,
    },
    offset,
  );
  // The `ok_response` ends with the bytes.
  return { bytes: finishWriting(writer), okAt: offset(okAt), ...offsets };
}
