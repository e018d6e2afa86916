/** The limits per minute by model of the requests of one caller and model. */

import { createHash } from 'node:crypto';
import type { ModelRate } from '../decision/model-rates.ts';
import type { RateLimitMember } from '../domain/problem-details.ts';
import type { RateSubject } from './rate-subjects.ts';

/** A limit by model and the subject that counts it, which is found when the limit first counts a request. */
export interface PlannedRate {
  readonly limit: number;
  readonly label: RateLimitMember;
  /** The name of the subject. */
  readonly name: string;
  subject: RateSubject | undefined;
}

/** @param rate not of `parallel` */
export function plannedRate(rate: ModelRate): PlannedRate {
  const { level, models, dimension, limit } = rate;
  return { limit, label: { level, models, dimension }, name: rateSubjectName(rate), subject: undefined };
}

/**
 * Returns the name of the subject that counts a limit, in every process. A change of the globs begins a new count. The
 * store keeps names in an index, so their length is bounded.
 */
export function rateSubjectName({ level, id, dimension, models }: ModelRate): string {
  const globs = createHash('sha256').update(JSON.stringify(models)).digest('base64url').slice(0, 16);
  return `${level}:${id} ${dimension} ${globs}`;
}
