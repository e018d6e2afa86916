/**
 * An OpenID provider that does what a test says: its answers and ID tokens may have any fault. It checks PKCE and the
 * client as a provider must. A login at its page is a call of `authorize`.
 */

import { createHash, randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type SigningKeyOfIssuer, sendJson, startIssuer, type TestIssuer } from './issuer.ts';

type Claims = Readonly<Record<string, unknown>>;

export interface Login {
  /** Replace claims of the ID token; undefined removes one. */
  readonly claims?: Claims;
  /** Replace members of its header. */
  readonly header?: Claims;
  readonly key?: SigningKeyOfIssuer;
  /** Signs the ID token in another way. */
  readonly sign?: (claims: Claims) => string;
  /** Replace parameters of the answer; undefined removes one. */
  readonly answer?: Readonly<Record<string, string | undefined>>;
}

export interface ScriptedProvider extends AsyncDisposable {
  readonly issuer: TestIssuer;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Logs the subject `ada` in and returns the query of the callback. @param location of the authorization request */
  authorize(location: string, login?: Login): string;
  /** Answers of the token endpoint; undefined: as a provider does. */
  tokenStatus: number | undefined;
  /** Replace members of the discovery document; undefined removes one. */
  discovery: Claims;
  /** Runs before the token endpoint answers. */
  beforeToken: () => Promise<void>;
  /** Signs a logout token: for all sessions of `ada`, now, unless the claims say otherwise. */
  logoutToken(claims?: Claims, header?: Claims, key?: SigningKeyOfIssuer): string;
  close(): Promise<void>;
}

interface Code {
  readonly challenge: string;
  readonly redirectUri: string;
  readonly idToken: string;
}

const CLIENT_ID = 'console';
const CLIENT_SECRET = 'secret of the + client %';
export const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout';

export async function startScriptedProvider(): Promise<ScriptedProvider> {
  const issuer = await startIssuer();
  const codes = new Map<string, Code>();
  const nowS = (): number => Math.floor(Date.now() / 1000);

  const token = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(Buffer.from(chunk));
    await provider.beforeToken();
    if (provider.tokenStatus !== undefined) return sendJson(response, { error: 'server_error' }, provider.tokenStatus);
    const form = new URLSearchParams(Buffer.concat(chunks).toString());
    // RFC 6749, section 2.3.1: both are encoded as in a form.
    const client = [CLIENT_ID, CLIENT_SECRET].map((part) => new URLSearchParams([['', part]]).toString().slice(1));
    const isClient = request.headers.authorization === `Basic ${Buffer.from(client.join(':')).toString('base64')}`;
    if (!isClient) return sendJson(response, { error: 'invalid_client' }, 401);
    const name = form.get('code') ?? '';
    const code = codes.get(name);
    codes.delete(name);
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    if (code === undefined || code.challenge !== challenge || code.redirectUri !== form.get('redirect_uri'))
      return sendJson(response, { error: 'invalid_grant' }, 400);
    return sendJson(response, { access_token: randomUUID(), token_type: 'Bearer', id_token: code.idToken });
  };

  issuer.answer = (request, response) => {
    if (request.url === '/.well-known/openid-configuration') {
      sendJson(response, {
        issuer: issuer.url,
        jwks_uri: issuer.jwksUri,
        authorization_endpoint: `${issuer.url}/authorize`,
        token_endpoint: `${issuer.url}/token`,
        end_session_endpoint: `${issuer.url}/logout`,
        authorization_response_iss_parameter_supported: true,
        id_token_signing_alg_values_supported: ['ES256', 'HS256', 'none'],
        ...provider.discovery,
      });
      return true;
    }
    if (request.url !== '/token') return false;
    void token(request, response);
    return true;
  };

  const provider: ScriptedProvider = {
    issuer,
    clientId: CLIENT_ID,
    clientSecret: CLIENT_SECRET,
    tokenStatus: undefined,
    discovery: {},
    beforeToken: () => Promise.resolve(),
    authorize(location, { claims = {}, header, key, sign, answer = {} } = {}) {
      const asked = new URL(location).searchParams;
      const all = {
        ...{ iss: issuer.url, sub: 'ada', aud: CLIENT_ID, iat: nowS(), exp: nowS() + 300 },
        ...{ nonce: asked.get('nonce'), sid: 'session-1', name: 'Ada', email: undefined },
        ...claims,
      };
      const code = randomUUID();
      codes.set(code, {
        challenge: asked.get('code_challenge') ?? '',
        redirectUri: asked.get('redirect_uri') ?? '',
        idToken: sign?.(all) ?? issuer.sign(all, header, key),
      });
      const parameters = { code, state: asked.get('state') ?? '', iss: issuer.url, session_state: 'x', ...answer };
      return new URLSearchParams(
        Object.entries(parameters).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
      ).toString();
    },
    logoutToken: (claims = {}, header = {}, key) =>
      issuer.sign(
        {
          ...{ aud: CLIENT_ID, sub: 'ada', jti: randomUUID(), iat: nowS(), exp: nowS() + 120 },
          ...{ events: { [LOGOUT_EVENT]: {} } },
          ...claims,
        },
        { typ: 'logout+jwt', ...header },
        key,
      ),
    close: () => issuer.close(),
    [Symbol.asyncDispose]: () => issuer.close(),
  };
  return provider;
}
