/**
 * Descriptions of endpoints' responses, for the API's description and for the tests, which compare each real response
 * with it.
 */

import type { TSchema } from 'typebox';

export type AnswerHeader = 'location' | 'etag' | 'set-cookie' | 'cache-control';

/** For endpoints that show one resource: the response has its entity tag, and the request may have conditions on it. */
export const TAGGED: readonly AnswerHeader[] = ['etag'];

export interface DescribedAnswer {
  /** One sentence. */
  readonly description: string;
  /** The schemas of the body by media type. Absent: there is no body. */
  readonly content?: Readonly<Record<string, TSchema>>;
  /** Headers that this response may have in addition to those of every response. */
  readonly headers?: readonly AnswerHeader[];
}

/** The successful responses by status. The error responses follow from the codes. */
export type Answers = Readonly<Record<number, DescribedAnswer>>;

export function shows(description: string, body: TSchema, headers: readonly AnswerHeader[] = []): Answers {
  return { 200: { description, content: { 'application/json': body }, headers } };
}

/** 201 with the created resource, its location and its entity tag. */
export function makes(description: string, body: TSchema): Answers {
  return { 201: { description, content: { 'application/json': body }, headers: ['location', 'etag'] } };
}

export const DONE: Answers = { 204: { description: 'Done. The response has no body.' } };
