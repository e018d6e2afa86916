/**
 * A small issuer on loopback for tests: a discovery document, a key set with keys made here, and tokens signed with
 * them. A test can replace its answers, rotate its key and count its requests.
 */

import { constants, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, isIP } from 'node:net';
import { type Authority, makeAuthority } from './certificates.ts';

type Algorithm = 'ES256' | 'ES384' | 'ES512' | 'RS256' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512' | 'EdDSA';

export interface SigningKeyOfIssuer {
  readonly kid: string;
  readonly alg: Algorithm;
  readonly privateKey: KeyObject;
  /** The public key, with `kid`, `alg` and `use`. */
  readonly jwk: Readonly<Record<string, unknown>>;
}

type Claims = Readonly<Record<string, unknown>>;

/** Answers a request and returns true, or returns false to leave it to the issuer. */
type Answer = (request: IncomingMessage, response: ServerResponse) => boolean;

export interface TestIssuer extends AsyncDisposable {
  /** The value of `iss`, for example `http://127.0.0.1:20123`. */
  readonly url: string;
  /** `host:port`, for the setting issuers.allowed-hosts. */
  readonly host: string;
  /** The certificate authority in PEM; undefined for http. */
  readonly ca: string | undefined;
  readonly jwksUri: string;
  /** The key that signs. */
  readonly key: SigningKeyOfIssuer;
  /** The key set that it serves; a test may paste it. */
  jwks(): { readonly keys: readonly Readonly<Record<string, unknown>>[] };
  /**
   * Signs a token: `iss`, `sub`, `aud` of `postern`, `iat` now and `exp` in 5 min, which `claims` may replace; undefined
   * removes a claim.
   * @param header replaces members of the header; undefined removes one
   */
  sign(claims?: Claims, header?: Claims, key?: SigningKeyOfIssuer): string;
  /** Signs with a new key from now on. @param keepsOld true if the key set still has the older keys */
  rotate(options?: { readonly alg?: Algorithm; readonly keepsOld?: boolean }): SigningKeyOfIssuer;
  /** Replaces answers of the server; undefined: its own. */
  answer: Answer | undefined;
  /** The paths of all requests so far. */
  readonly requests: string[];
  close(): Promise<void>;
}

export interface TestIssuerOptions {
  /** True: https for `localhost`, with an authority made here. Default: http for 127.0.0.1. */
  readonly tls?: boolean;
  readonly alg?: Algorithm;
  /** Appended to the issuer's URL, for example `/realms/staff`. */
  readonly path?: string;
  /** The name in the certificate and the URL. Default: `localhost`. */
  readonly hostname?: string;
}

export async function startIssuer({
  tls = false,
  alg = 'ES256',
  path = '',
  hostname,
}: TestIssuerOptions = {}): Promise<TestIssuer> {
  const name = hostname ?? (tls ? 'localhost' : '127.0.0.1');
  const authority = tls ? makeAuthority() : undefined;
  let keys: readonly SigningKeyOfIssuer[] = [makeIssuerKey(alg)];
  const requests: string[] = [];
  const listener: RequestListener = (request, response) => {
    requests.push(request.url ?? '');
    if (issuer.answer?.(request, response) === true) return;
    if (request.url === `${path}/.well-known/openid-configuration`) {
      sendJson(response, { issuer: issuer.url, jwks_uri: issuer.jwksUri });
    } else if (request.url === `${path}/jwks`) sendJson(response, issuer.jwks());
    else sendJson(response, { error: 'not_found' }, 404);
  };
  const server = authority === undefined ? createServer(listener) : serverWithTls(authority, name, listener);
  const port = await listen(server);
  const host = `${name}:${port}`;
  const url = `${tls ? 'https' : 'http'}://${host}${path}`;
  const issuer: TestIssuer = {
    url,
    host,
    ca: authority?.certPem,
    jwksUri: `${url}/jwks`,
    answer: undefined,
    requests,
    get key() {
      return newest(keys);
    },
    jwks: () => ({ keys: keys.map(({ jwk }) => jwk) }),
    sign: (claims = {}, header = {}, key = newest(keys)) =>
      signToken(key, { iss: url, sub: 'subject', aud: 'postern', ...times(), ...claims }, header),
    rotate({ alg: next = newest(keys).alg, keepsOld = false } = {}) {
      const key = makeIssuerKey(next);
      keys = keepsOld ? [...keys, key] : [key];
      return key;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
    [Symbol.asyncDispose]: () => issuer.close(),
  };
  return issuer;
}

export function sendJson(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function newest(keys: readonly SigningKeyOfIssuer[]): SigningKeyOfIssuer {
  const key = keys.at(-1);
  if (key === undefined) throw new Error('the issuer has no key');
  return key;
}

function times(): { readonly iat: number; readonly exp: number } {
  const iat = Math.floor(Date.now() / 1000);
  return { iat, exp: iat + 300 };
}

function serverWithTls(authority: Authority, name: string, listener: RequestListener) {
  if (isIP(name) !== 0) throw new Error('a certificate of these tests has a DNS name');
  const { certPem, keyPem } = authority.issue(name);
  return createHttpsServer({ cert: certPem, key: keyPem }, listener);
}

async function listen(server: ReturnType<typeof createServer>): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const address: AddressInfo | string | null = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the issuer has no address');
  return address.port;
}

const CURVES: Readonly<Record<string, string>> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' };

export function makeIssuerKey(alg: Algorithm = 'ES256', kid = randomBytes(8).toString('hex')): SigningKeyOfIssuer {
  const { publicKey, privateKey } = makePair(alg);
  return { kid, alg, privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, alg, use: 'sig' } };
}

function makePair(alg: Algorithm): { readonly publicKey: KeyObject; readonly privateKey: KeyObject } {
  if (alg === 'EdDSA') return generateKeyPairSync('ed25519');
  const namedCurve = CURVES[alg];
  return namedCurve === undefined
    ? generateKeyPairSync('rsa', { modulusLength: 2048 })
    : generateKeyPairSync('ec', { namedCurve });
}

/** Signs any claims with any header; a header member of undefined is left out. */
export function signToken(key: SigningKeyOfIssuer, claims: Claims, header: Claims = {}): string {
  return signText(key, { alg: key.alg, kid: key.kid, typ: 'JWT', ...header }, JSON.stringify(claims));
}

/** Signs a payload as it is, for example JSON with a duplicate member, and a header that is a text as well. */
export function signText(key: SigningKeyOfIssuer, header: Claims | string, payload: string): string {
  const text = `${base64url(typeof header === 'string' ? header : JSON.stringify(header))}.${base64url(payload)}`;
  return `${text}.${signature(key, Buffer.from(text)).toString('base64url')}`;
}

function signature({ alg, privateKey }: SigningKeyOfIssuer, data: Buffer): Buffer {
  if (alg === 'EdDSA') return sign(null, data, privateKey);
  const hash = `sha${alg.slice(2)}`;
  if (alg.startsWith('ES')) return sign(hash, data, { key: privateKey, dsaEncoding: 'ieee-p1363' });
  if (alg.startsWith('PS'))
    return sign(hash, data, {
      key: privateKey,
      padding: constants.RSA_PKCS1_PSS_PADDING,
      saltLength: Number(alg.slice(2)) / 8,
    });
  return sign(hash, data, privateKey);
}

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url');
}
