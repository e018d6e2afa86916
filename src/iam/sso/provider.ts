/**
 * Requests to an OpenID provider for the login of a user to the console: authorization code with PKCE, checked by
 * `openid-client`. Every request is bounded, and reaches only addresses that an issuer may have.
 */

import {
  AuthorizationResponseError,
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  buildEndSessionUrl,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  type CustomFetch,
  calculatePKCECodeChallenge,
  clockTolerance,
  customFetch,
  enableNonRepudiationChecks,
  None,
  type ServerMetadata,
  setJwksCache,
} from 'openid-client';
import { Semaphore } from '../../concurrency/semaphore.ts';
import { ownMember } from '../../domain/json.ts';
import { hasUnreadableName } from '../../identity/issuer-token-form.ts';
import { type FetchRules, fetchBounded } from '../../outbound/fetch.ts';
import { parseFetched } from '../issuers/fetched-json.ts';
import { fetchDiscovery } from '../issuers/refresh-keys.ts';
import type { SsoIssuer } from './queries.ts';
import type { SsoState } from './state.ts';

type Outbound = Pick<FetchRules, 'allowedHosts' | 'resolve' | 'timeoutMs' | 'signal'>;

/** How long a discovery document is used. */
const DOCUMENT_MS = 600_000;
/** How long a failure is repeated instead of another request, so that a flood of logins asks a provider rarely. */
const FAILURE_MS = 5_000;
/** Logins that a process finishes at a time. A tenant leaves half of the free ones to others. */
const EXCHANGES = { permits: 32, maxWaiting: 128 };
/** Documents that a process keeps. The oldest one leaves first. */
const MAX_DOCUMENTS = 1_000;
const MAX_DETAIL_LENGTH = 300;

/** The provider gave no usable answer. The message is for the audit log. */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';
}

/** The claims of a verified ID token. */
interface ProvedClaims {
  readonly kind: 'proved';
  readonly claims: Readonly<Record<string, unknown>>;
  readonly idToken: string;
}

type ExchangeResult =
  | ProvedClaims
  /** The provider answered that the user may not log in, or did not want to. */
  | { readonly kind: 'denied'; readonly detail: string }
  /** The answer or the ID token is not valid. */
  | { readonly kind: 'invalid'; readonly detail: string };

/** The part of a discovery document that a login uses. */
type UsedDocument =
  | { readonly kind: 'ok'; readonly metadata: ServerMetadata; readonly methods: readonly string[] | undefined }
  | { readonly kind: 'failed'; readonly reason: string };

interface Kept {
  readonly version: string;
  readonly document: Promise<UsedDocument>;
  untilMs: number;
}

export class SsoProviders {
  readonly #outbound: Outbound;
  readonly #monotonicMs: () => number;
  readonly #documents = new Map<string, Kept>();
  readonly #exchanges = new Semaphore(EXCHANGES);

  constructor(outbound: Outbound, monotonicMs: () => number = () => performance.now()) {
    this.#outbound = outbound;
    this.#monotonicMs = monotonicMs;
  }

  /** Returns the address of the provider's login page for a login. @throws ProviderError */
  async authorizationUrl(issuer: SsoIssuer, state: SsoState): Promise<string> {
    const { config } = await this.#client(issuer, undefined);
    const { scopes, required_acr: acr } = issuer.sso;
    const parameters = {
      redirect_uri: state.redirectUri,
      scope: [...new Set(['openid', ...scopes])].join(' '),
      state: state.state,
      nonce: state.nonce,
      code_challenge: await calculatePKCECodeChallenge(state.verifier),
      code_challenge_method: 'S256',
      ...(acr === undefined ? {} : { acr_values: acr }),
    };
    return pageOf(() => buildAuthorizationUrl(config, parameters), issuer);
  }

  /**
   * Exchanges the code of the provider's answer for an ID token and verifies both.
   * @param answer the query of the callback
   * @throws ProviderError if the provider does not respond, or too many logins wait
   */
  async exchange(
    issuer: SsoIssuer,
    secret: string | undefined,
    state: SsoState,
    answer: URLSearchParams,
  ): Promise<ExchangeResult> {
    const run = this.#exchanges.run(() => this.#exchange(issuer, secret, state, answer), issuer.tenantId);
    if (run === undefined) throw new ProviderError('Too many logins are under way.');
    return run;
  }

  async #exchange(
    issuer: SsoIssuer,
    secret: string | undefined,
    state: SsoState,
    answer: URLSearchParams,
  ): Promise<ExchangeResult> {
    const { config, failure } = await this.#client(issuer, secret);
    const url = new URL(state.redirectUri);
    url.search = answer.toString();
    try {
      const tokens = await authorizationCodeGrant(config, url, {
        expectedState: state.state,
        expectedNonce: state.nonce,
        pkceCodeVerifier: state.verifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (claims === undefined || tokens.id_token === undefined) return { kind: 'invalid', detail: 'no ID token' };
      return { kind: 'proved', claims, idToken: tokens.id_token };
    } catch (error) {
      const failed = failure();
      if (failed !== undefined) throw new ProviderError(failed);
      if (error instanceof AuthorizationResponseError) return { kind: 'denied', detail: detailOf(error.error) };
      return { kind: 'invalid', detail: reasonOf(error) };
    }
  }

  /**
   * Returns the address at which the browser also ends the provider's session (OpenID Connect RP-Initiated Logout 1.0);
   * undefined if the provider has none. @throws ProviderError
   */
  async endSessionUrl(issuer: SsoIssuer, idToken: string | undefined, returnTo: string): Promise<string | undefined> {
    const { config } = await this.#client(issuer, undefined);
    if (config.serverMetadata().end_session_endpoint === undefined) return undefined;
    const parameters = {
      post_logout_redirect_uri: returnTo,
      ...(idToken === undefined ? {} : { id_token_hint: idToken }),
    };
    return pageOf(() => buildEndSessionUrl(config, parameters), issuer);
  }

  /** `failure` returns why a request of this client failed; undefined if none did. */
  async #client(issuer: SsoIssuer, secret: string | undefined) {
    const { metadata, auth } = await this.#metadata(issuer, secret);
    const { client_id: clientId } = issuer.sso;
    const config = new Configuration(metadata, clientId, { [clockTolerance]: issuer.leewaySeconds }, auth);
    const { fetch, failure } = this.#boundedFetch(issuer);
    config[customFetch] = fetch;
    // The bounded fetch permits http on loopback only.
    if (isPlain(issuer)) allowInsecureRequests(config);
    // Without it, the signature of an ID token would not be checked, because it comes by TLS.
    enableNonRepudiationChecks(config);
    if (issuer.pastedKeys !== null) {
      setJwksCache(config, { jwks: { keys: [...issuer.pastedKeys] }, uat: Math.floor(Date.now() / 1000) });
    }
    return { config, failure };
  }

  async #metadata(
    issuer: SsoIssuer,
    secret: string | undefined,
  ): Promise<{ readonly metadata: ServerMetadata; readonly auth: ClientAuth }> {
    const found = await this.#document(issuer);
    if (found.kind === 'failed') throw new ProviderError(found.reason);
    return { metadata: found.metadata, auth: authOf(secret, found.methods) };
  }

  #document(issuer: SsoIssuer): Promise<UsedDocument> {
    const nowMs = this.#monotonicMs();
    const known = this.#documents.get(issuer.id);
    if (known !== undefined && known.version === issuer.version && nowMs < known.untilMs) return known.document;
    const kept: Kept = {
      version: issuer.version,
      document: fetchUsed(this.#outbound, issuer),
      untilMs: nowMs + DOCUMENT_MS,
    };
    this.#documents.delete(issuer.id);
    this.#documents.set(issuer.id, kept);
    const [oldest] = this.#documents.keys();
    if (this.#documents.size > MAX_DOCUMENTS && oldest !== undefined) this.#documents.delete(oldest);
    void kept.document.then((result) => {
      if (result.kind === 'failed') kept.untilMs = this.#monotonicMs() + FAILURE_MS;
    });
    return kept.document;
  }

  #boundedFetch({ ca }: SsoIssuer): { readonly fetch: CustomFetch; readonly failure: () => string | undefined } {
    let failed: string | undefined;
    const fetch: CustomFetch = async (url, { method, headers, body }) => {
      const text = body instanceof URLSearchParams ? body.toString() : body;
      const answer = await fetchBounded(url, {
        ...this.#outbound,
        ca: ca ?? undefined,
        method: method === 'POST' ? 'POST' : 'GET',
        headers,
        ...(typeof text === 'string' ? { body: text } : {}),
      });
      const problem = answer.kind === 'ok' ? problemOf(answer.body) : undefined;
      if (answer.kind === 'ok' && answer.status < 500 && problem === undefined) {
        const type = answer.headers['content-type'] ?? 'application/octet-stream';
        return new Response(answer.body.length === 0 ? null : new Uint8Array(answer.body), {
          status: answer.status,
          headers: { 'content-type': type },
        });
      }
      failed =
        answer.kind === 'ok' ? (problem ?? `The provider answered with the status ${answer.status}.`) : answer.reason;
      throw new ProviderError(failed);
    };
    return { fetch, failure: () => failed };
  }
}

const ADDRESSES = ['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'end_session_endpoint'] as const;
const MAX_ADDRESS_LENGTH = 2048;
const METHODS: readonly string[] = ['client_secret_basic', 'client_secret_post'];

/** Everything else of the document is not kept, because it may be large, and a tenant may have 100 issuers. */
async function fetchUsed(outbound: Outbound, { issuer, ca, algorithms }: SsoIssuer): Promise<UsedDocument> {
  const found = await fetchDiscovery(outbound, { issuer, ca });
  if (found.kind === 'failed') return found;
  const { document } = found;
  const addresses = ADDRESSES.flatMap((name) => {
    const value = document[name];
    return typeof value === 'string' && value.length <= MAX_ADDRESS_LENGTH ? [[name, value]] : [];
  });
  const announced = textsOf(document['id_token_signing_alg_values_supported']) ?? ['RS256'];
  const metadata = {
    ...Object.fromEntries(addresses),
    issuer,
    authorization_response_iss_parameter_supported: document['authorization_response_iss_parameter_supported'] === true,
    // Algorithms come from the issuer's settings, not from the token (RFC 8725, section 3.1).
    id_token_signing_alg_values_supported: algorithms.filter((each) => announced.includes(each)),
  };
  const methods = textsOf(document['token_endpoint_auth_methods_supported']);
  return { kind: 'ok', metadata, methods: methods && METHODS.filter((each) => methods.includes(each)) };
}

/** Returns the reason why the library must not parse an answer, or the ID token in it. An answer may be no JSON. */
function problemOf(body: Buffer): string | undefined {
  const read = parseFetched(body);
  if (read.kind !== 'ok') return read.kind === 'refused' ? read.reason : undefined;
  const token = ownMember(read.value, 'id_token');
  return typeof token === 'string' && hasUnreadableName(token) ? 'The ID token cannot be read.' : undefined;
}

/** RFC 6749, section 2.3.1: Basic, unless the provider announces other methods only. */
function authOf(secret: string | undefined, methods: readonly string[] | undefined): ClientAuth {
  if (secret === undefined) return None();
  const needsPost = methods !== undefined && !methods.includes('client_secret_basic');
  return needsPost && methods.includes('client_secret_post') ? ClientSecretPost(secret) : ClientSecretBasic(secret);
}

function isPlain({ issuer }: SsoIssuer): boolean {
  return issuer.startsWith('http:');
}

/**
 * The browser must not be sent to anything but a page of the web.
 * @param build throws if the discovery document names no address that the library can use
 * @throws ProviderError
 */
function pageOf(build: () => URL, issuer: SsoIssuer): string {
  let url: URL;
  try {
    url = build();
  } catch (error) {
    throw new ProviderError(reasonOf(error));
  }
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isPlain(issuer)))
    throw new ProviderError('The discovery document names an address that is not https.');
  return url.href;
}

function textsOf(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : undefined;
}

/** Returns the library's code and sentences, which have no text of a token. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  const code = 'code' in error && typeof error.code === 'string' ? `${error.code}: ` : '';
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
  // The code of an error response of the token endpoint (RFC 6749, section 5.2).
  const response = 'error' in error && typeof error.error === 'string' ? ` (${error.error})` : '';
  return detailOf(`${code}${error.message}${cause}${response}`);
}

function detailOf(text: string): string {
  return text.slice(0, MAX_DETAIL_LENGTH);
}
