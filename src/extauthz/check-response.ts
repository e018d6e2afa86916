/**
 * Writes Envoy's `CheckResponse` for what is allowed. Envoy allows exactly when `status.code` is 0, whatever else the answer says and
 * also when it is empty; so code 0 is written in this file and in its templates alone, and only by functions that are handed an allow.
 */

import type { Allow, PublicAllow } from '../decision/model.ts';
import type { RequestId } from '../domain/ids.ts';
import type { LimitDecision } from '../metering/admission.ts';
import { FIXED_BYTES, NO_HOLE, OK_RESPONSE, PLAIN_RESERVATION_LENGTH, STATUS_OK } from './answer-template.ts';
import { createTemplates } from './answer-templates.ts';
import { fillAscii, fillHex, fillUtf8, utf8Length } from './fill.ts';
import { MEMBER, putMember, wrapMetadata } from './metadata.ts';
import * as Own from './own-headers.ts';
import type { RandomPool } from './random-pool.ts';
import { withRateHeaders } from './rate-headers.ts';
import { beginWriting, finishWriting, putBytes, wrap } from './wire-write.ts';

/** Of a model's name in the metadata; the rest is cut, the log does not need it. */
const MAX_MODEL_LENGTH = 256;

/** What of an admission the answer says. */
export type Admitted = Pick<Extract<LimitDecision, { kind: 'admitted' }>, 'reservation' | 'rate'>;

export interface AllowWriter {
  /**
   * An identity for the upstream, and for the access log what the decision was about.
   * @param isMessages true: the client finds the request's id where Anthropic's SDKs look for it too
   */
  allow(
    allow: Allow,
    admission: Admitted,
    requestId: RequestId,
    aliases: readonly string[],
    isMessages: boolean,
  ): Buffer;
  /** Removes the `x-postern-` names and nothing else: the HTTP module, which answers public routes, authenticates by itself. */
  public(allow: PublicAllow, requestId: RequestId, aliases: readonly string[]): Buffer;
}

/**
 * @param forwardCredential whether the headers that carry a credential reach the upstream
 * @param random for the reservation ids, which nobody may guess
 */
export function createAllowWriter(forwardCredential: boolean, random: RandomPool): AllowWriter {
  const templateOf = createTemplates(Own.prepareRemovals(forwardCredential));
  return {
    allow(allow, { reservation, rate }, requestId, aliases, isMessages) {
      const { principal, roles, tenant, route } = allow;
      const { id: subject, kind } = principal;
      const user = principal.kind === 'user' ? principal.id : principal.owner?.id;
      const model = (allow.model ?? allow.defaultModel)?.slice(0, MAX_MODEL_LENGTH);
      const maxTokens = allow.maxTokens === undefined ? undefined : String(allow.maxTokens);
      const template = templateOf({
        kind,
        route,
        roles,
        subjectLength: subject.length,
        userLength: user?.length,
        tenantLength: tenant.id.length,
        requestIdLength: requestId.length,
        modelLength: model === undefined ? undefined : utf8Length(model),
        maxTokensLength: maxTokens?.length,
        reservationLength: reservation?.length,
        isMessages,
        // Envoy drops a header with an empty value, and with it the removal of what the client sent.
        defaultModel: allow.defaultModel === '' ? undefined : allow.defaultModel,
        seen: Own.removal(Own.unlisted(aliases)),
      });
      const answer = Buffer.allocUnsafe(template.bytes.length);
      answer.set(template.bytes);
      fillAscii(answer, subject, template.subjectHeader, template.subjectMember, template.keyMember);
      if (user !== undefined) fillAscii(answer, user, template.userHeader, template.userMember, NO_HOLE);
      fillAscii(answer, tenant.id, template.tenantHeader, template.tenantIdHeader, template.tenantMember);
      if (maxTokens !== undefined) fillAscii(answer, maxTokens, template.maxTokensHeader, NO_HOLE, NO_HOLE);
      if (model !== undefined) fillUtf8(answer, model, template.modelMember);
      fillAscii(
        answer,
        requestId,
        template.requestIdMember,
        template.requestIdHeader,
        template.anthropicRequestIdHeader,
      );
      if (reservation === undefined)
        fillHex(answer, random.take(PLAIN_RESERVATION_LENGTH / 2), template.reservationMember);
      else fillAscii(answer, reservation, template.reservationMember, NO_HOLE, NO_HOLE);
      return rate === undefined ? answer : withRateHeaders(answer, STATUS_OK.length, rate);
    },
    public(_allow, requestId, aliases) {
      const seen = Own.removal(Own.unlistedOwn(aliases));
      const writer = beginWriting(FIXED_BYTES + seen.length);
      const end = writer.at;
      putMember(writer, MEMBER.request_id, requestId);
      wrapMetadata(writer, end);
      const okEnd = writer.at;
      putBytes(writer, seen);
      putBytes(writer, Own.REMOVED_ON_PUBLIC);
      wrap(writer, OK_RESPONSE, okEnd);
      putBytes(writer, STATUS_OK);
      return finishWriting(writer);
    },
  };
}
