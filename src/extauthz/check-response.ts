/**
 * Writes Envoy's `CheckResponse` for an allow. Envoy allows a request exactly if `status.code` is 0, which includes an
 * empty answer. Therefore only this file and its templates write code 0, and only in functions that take an allow.
 */

import type { Allow, PublicAllow } from '../decision/model.ts';
import type { RequestId } from '../domain/ids.ts';
import type { LimitDecision } from '../metering/admission.ts';
import { beginFields, withFields } from './added-fields.ts';
import {
  FIXED_BYTES,
  METADATA_AT,
  NO_HOLE,
  OK_RESPONSE,
  PLAIN_RESERVATION_LENGTH,
  STATUS_OK,
} from './answer-template.ts';
import { createTemplates } from './answer-templates.ts';
import { BUDGET_HEADER } from './budget-answers.ts';
import type { Aliases } from './check-input.ts';
import { fillAscii, fillHex, fillUtf8, utf8Length } from './fill.ts';
import { putResponseHeader } from './header-options.ts';
import type { UpstreamTokenHeader } from './header-spellings.ts';
import { MEMBER, putAsciiMember, putMember, wrapMetadata } from './metadata.ts';
import * as Own from './own-headers.ts';
import type { RandomPool } from './random-pool.ts';
import { putAddedRateHeaders } from './rate-headers.ts';
import { beginWriting, finishWriting, putBytes, wrap } from './wire-write.ts';

/** The length at which the metadata cuts a model's name. */
const MAX_MODEL_LENGTH = 256;
/** Holds the template of an answer with added fields while its holes are filled. */
const scratch = Buffer.allocUnsafeSlow(16_384);

/** The part of an admission that the answer contains. */
export type AdmittedLimits = Pick<
  Extract<LimitDecision, { kind: 'admitted' }>,
  'reservation' | 'rate' | 'tokenRate' | 'charges'
>;

export interface AllowWriter {
  /**
   * Writes the identity for the upstream, and the decision's metadata for the access log.
   * @param isMessages true: the answer also has the request id where Anthropic's SDKs read it
   * @param token the encoded header with the token for the upstream; default: none
   * @param budgetHeader the value of the header about the caller's budget; default: none
   */
  allow(
    allow: Allow,
    admission: AdmittedLimits,
    requestId: RequestId,
    aliases: Aliases,
    isMessages: boolean,
    token?: Buffer,
    budgetHeader?: string,
  ): Buffer;
  /** Removes only the `x-postern-` names, because the HTTP module serves public routes and authenticates by itself. */
  public(allow: PublicAllow, requestId: RequestId, aliases: Aliases): Buffer;
  /** The allow of a check in shadow mode. It has nothing that Envoy could apply to the request. */
  shadow(allow: Allow | PublicAllow): Buffer;
}

/**
 * @param forwardCredential whether the headers that carry a credential reach the upstream
 * @param random the source of the reservation ids, which must not be predictable
 * @param tokenHeader the header that carries the token for the upstream; default: `x-postern-token`
 */
export function createAllowWriter(
  forwardCredential: boolean,
  random: RandomPool,
  tokenHeader?: UpstreamTokenHeader,
): AllowWriter {
  const templateOf = createTemplates(Own.prepareRemovals(forwardCredential, tokenHeader));
  return {
    allow(allow, { reservation, rate, tokenRate, charges }, requestId, aliases, isMessages, token, budgetHeader) {
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
        // Envoy drops a header with an empty value, and then the client's own header would reach the upstream.
        defaultModel: allow.defaultModel === '' ? undefined : allow.defaultModel,
        hasToken: token !== undefined,
        hasAllAliases: aliases.areAll,
        seen: Own.removal(Own.unlisted(aliases)),
      });
      const { okAt, bytes } = template;
      const adds = (rate ?? tokenRate ?? budgetHeader ?? token ?? charges) !== undefined;
      const answer = adds && bytes.length <= scratch.length ? scratch : Buffer.allocUnsafe(bytes.length);
      answer.set(bytes);
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
      if (!adds) return answer;
      const fields = beginFields();
      const { writer } = fields;
      if (charges !== undefined) putAsciiMember(writer, MEMBER.charges, charges);
      fields.metadataAt = writer.at;
      if (rate !== undefined) putAddedRateHeaders(writer, rate, 'requests');
      if (tokenRate !== undefined) putAddedRateHeaders(writer, tokenRate, 'tokens');
      if (budgetHeader !== undefined) putResponseHeader(writer, BUDGET_HEADER, budgetHeader);
      return withFields(answer, bytes.length, METADATA_AT, okAt, fields, token);
    },
    public(_allow, requestId, aliases) {
      const seen = Own.removal(Own.unlistedOwn(aliases));
      const writer = beginWriting(FIXED_BYTES + seen.length);
      const end = writer.at;
      putMember(writer, MEMBER.request_id, requestId);
      wrapMetadata(writer, end);
      const okEnd = writer.at;
      putBytes(writer, seen);
      putBytes(writer, Own.removedOnPublic(aliases));
      wrap(writer, OK_RESPONSE, okEnd);
      putBytes(writer, STATUS_OK);
      return finishWriting(writer);
    },
    shadow: () => STATUS_OK,
  };
}
