/** The public keys of access tokens (RFC 7517), for services that verify tokens. */

import { Type } from 'typebox';
import type { HeaderValue } from '../decision/model.ts';
import { entityTag } from '../iam/change/preconditions.ts';
import { component } from '../iam/schema/keywords.ts';
import { type Answers, shows } from './answers.ts';
import type { Answer, Endpoint } from './endpoint.ts';
import { NOTHING, publicEndpoint } from './endpoint.ts';

export interface PublishedKeys {
  jwks(): { readonly keys: readonly object[] };
}

/** The server publishes a key a day before it signs with it, so a copy of this age has every key in use. */
const MAX_AGE_SECONDS = 300;

const KeySet = component(
  'KeySet',
  Type.Object({
    keys: Type.Array(
      Type.Object(
        { kty: Type.String(), kid: Type.String(), use: Type.String(), alg: Type.String() },
        { additionalProperties: true },
      ),
    ),
  }),
);

const ANSWERS: Answers = {
  ...shows('A JWK set.', KeySet, ['cache-control', 'etag']),
  304: { description: "The client's version, named in If-None-Match, is current.", headers: ['cache-control', 'etag'] },
};

export function jwksEndpoint(tokens: PublishedKeys): Endpoint {
  return publicEndpoint({
    method: 'GET',
    path: '/.well-known/jwks.json',
    operationId: 'getKeySet',
    summary:
      'Get the public keys of access tokens: the next, the current, and the retired keys until their tokens have expired.',
    body: NOTHING,
    query: NOTHING,
    answers: ANSWERS,
    refusals: [],
    handler: async (input): Promise<Answer> => {
      const body = tokens.jwks();
      const etag = entityTag(body);
      const headers = { 'cache-control': `public, max-age=${MAX_AGE_SECONDS}, must-revalidate`, etag };
      return isKnown(input.header('if-none-match'), etag) ? { status: 304, headers } : { status: 200, headers, body };
    },
  });
}

/** Limits the tags of one header that are compared. */
const MAX_TAGS = 64;

/**
 * Reports whether the client's copy is current. The server ignores malformed tags, because a verifier must get the keys
 * in any case.
 */
function isKnown(ifNoneMatch: HeaderValue, etag: string): boolean {
  if (typeof ifNoneMatch !== 'string') return false;
  return ifNoneMatch.split(',', MAX_TAGS).some((tag) => tag.trim().replace(/^W\//, '') === etag);
}
