/** What the answers of endpoints look like: for the description of the API, and for the tests, which hold every real answer against it. */

import type { TSchema } from 'typebox';

export type AnswerHeader = 'location' | 'etag' | 'set-cookie' | 'cache-control';

/** Of endpoints that show one resource: the answer carries its entity tag, and takes conditions on it. */
export const TAGGED: readonly AnswerHeader[] = ['etag'];

export interface DescribedAnswer {
  /** One sentence. */
  readonly description: string;
  /** Of the body by media type; absent: there is no body. */
  readonly content?: Readonly<Record<string, TSchema>>;
  /** Headers that this answer may have and others do not. */
  readonly headers?: readonly AnswerHeader[];
}

/** The answers of success by status. Those of refusal follow from the codes. */
export type Answers = Readonly<Record<number, DescribedAnswer>>;

/** 200 with a body. */
export function shows(description: string, body: TSchema, headers: readonly AnswerHeader[] = []): Answers {
  return { 200: { description, content: { 'application/json': body }, headers } };
}

/** 201 with the resource that was made, where it is, and its entity tag. */
export function makes(
  description: string,
  body: TSchema,
  headers: readonly AnswerHeader[] = ['location', 'etag'],
): Answers {
  return { 201: { description, content: { 'application/json': body }, headers } };
}

/** 204. */
export const DONE: Answers = { 204: { description: 'Done. The response has no body.' } };
