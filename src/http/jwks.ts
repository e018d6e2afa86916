/** The public keys of tokens (RFC 7517) and where they are, for services that verify tokens. */

import { type TSchema, Type } from 'typebox';
import type { HeaderValue } from '../decision/model.ts';
import { Refusal } from '../domain/errors.ts';
import { entityTag } from '../iam/change/preconditions.ts';
import { component } from '../iam/schema/keywords.ts';
import { type AnswerHeader, type Answers, shows } from './answers.ts';
import { type Answer, type Endpoint, publicEndpoint } from './endpoint.ts';

export interface PublishedKeys {
  /** The `iss` of tokens. */
  readonly issuer: string;
  jwks(): { readonly keys: readonly object[] };
}

/** The server publishes a key a day before it signs with it, so a copy of this age has every key in use. */
const MAX_AGE_SECONDS = 300;

const KeySet = component(
  'KeySet',
  Type.Object({
    keys: Type.Array(
      Type.Object(
        {
          kty: Type.String(),
          crv: Type.String({ description: 'The curve of the key, `P-256`.' }),
          x: Type.String({ description: 'The x coordinate of the key, base64url.' }),
          y: Type.String({ description: 'The y coordinate of the key, base64url.' }),
          kid: Type.String(),
          use: Type.String(),
          alg: Type.String(),
        },
        { additionalProperties: true },
      ),
    ),
  }),
);

/** The part of OpenID Connect Discovery 1.0 that a service reads which only verifies tokens. */
const Discovery = component(
  'Discovery',
  Type.Object({
    issuer: Type.String({ description: 'The `iss` of tokens: the setting `issuer`.' }),
    jwks_uri: Type.String({ description: 'The address of the public keys.' }),
    response_types_supported: Type.Array(Type.String(), {
      description: 'Required by the specification. The server has no authorization endpoint.',
    }),
    subject_types_supported: Type.Array(Type.String(), {
      description: 'Required by the specification: the same `sub` for every audience.',
    }),
    id_token_signing_alg_values_supported: Type.Array(Type.String(), { description: 'The algorithm of tokens.' }),
  }),
);

const KEY_SET_PATH = '/.well-known/jwks.json';

export function keySetEndpoints(tokens: PublishedKeys): readonly Endpoint[] {
  return [
    publicEndpoint({
      method: 'GET',
      path: KEY_SET_PATH,
      operationId: 'getKeySet',
      summary:
        'Get the public keys of tokens: the next, the current, and the retired keys until their tokens have expired.',
      answers: cached('A JWK set.', KeySet),
      handler: async (input) => cachedAnswer(tokens.jwks(), input.header('if-none-match')),
    }),
    publicEndpoint({
      method: 'GET',
      path: '/.well-known/openid-configuration',
      operationId: 'getDiscovery',
      summary:
        'Get the issuer of tokens and the address of its public keys (OpenID Connect Discovery 1.0), if the setting `issuer` is a URL.',
      answers: cached('The discovery document.', Discovery),
      refusals: ['not_found'],
      handler: async (input) => cachedAnswer(discoveryOf(tokens.issuer), input.header('if-none-match')),
    }),
  ];
}

/**
 * Returns the document. The members after `jwks_uri` are those that the specification requires and that a Kubernetes API
 * server has as well: some libraries accept no document without them.
 * @throws Refusal if the issuer is no URL, because nothing else states where clients reach this server
 */
function discoveryOf(issuer: string): object {
  if (!/^https?:\/\//.test(issuer) || !URL.canParse(issuer)) {
    throw new Refusal(
      'not_found',
      'The issuer of this installation is not a URL, so there is no discovery document. Set issuer to the URL at which clients reach this server.',
    );
  }
  return {
    issuer,
    jwks_uri: `${issuer.replace(/\/$/, '')}${KEY_SET_PATH}`,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
  };
}

function cached(description: string, body: TSchema): Answers {
  const headers: readonly AnswerHeader[] = ['cache-control', 'etag'];
  return {
    ...shows(description, body, headers),
    304: { description: "The client's version, named in If-None-Match, is current.", headers },
  };
}

function cachedAnswer(body: object, ifNoneMatch: HeaderValue): Answer {
  const etag = entityTag(body);
  const headers = { 'cache-control': `public, max-age=${MAX_AGE_SECONDS}, must-revalidate`, etag };
  return isKnown(ifNoneMatch, etag) ? { status: 304, headers } : { status: 200, headers, body };
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
