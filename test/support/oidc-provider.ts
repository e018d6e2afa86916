/**
 * A real OpenID provider on loopback (npm `oidc-provider`): authorization code with PKCE, keys that rotate, logout at the
 * provider and by back channel. It speaks `http`, so `issuers.allowed-hosts` must name its host.
 */

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { type ClientMetadata, Provider } from 'oidc-provider';

/** The claims of a person's ID tokens, besides those of the protocol. */
export type PersonClaims = Readonly<Record<string, unknown>>;

export interface OidcProvider {
  /** The value of `iss`: `http://localhost:<port>` */
  readonly issuer: string;
  /** For `issuers.allowed-hosts`. */
  readonly host: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /**
   * Registers the client's addresses, in place of former ones.
   * @param origin of the console, for example `http://127.0.0.1:8080`
   * @param issuerId the id of the issuer in Postern
   */
  register(origin: string, issuerId: string, backchannel?: string): void;
  /** Sets a person's claims. `acr` is the context class that a login of this person reaches. */
  person(subject: string, claims: PersonClaims, acr?: string): void;
  /** The logout tokens that were not accepted, up to now. */
  readonly rejectedLogouts: readonly string[];
  /** Signs with a new key from now on, and publishes the former keys as well. */
  rotate(): Promise<void>;
  close(): Promise<void>;
}

const CLIENT_ID = 'postern-console';
const CLIENT_SECRET = 'the secret of a client in tests';

async function signingKey(number: number): Promise<JWK> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  return { ...(await exportJWK(privateKey)), kid: `key-${number}`, alg: 'RS256', use: 'sig' };
}

/** Starts a provider on a free port of this machine. */
export async function startOidcProvider(): Promise<OidcProvider> {
  const people = new Map<string, { readonly claims: PersonClaims; readonly acr: string | undefined }>();
  let keys = [await signingKey(1)];
  let client: ClientMetadata = clientOf([], []);
  let provider: Provider | undefined;

  const server = createServer((request, response) => {
    void answer(request, response);
  });
  server.listen(0, 'localhost');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  const host = `localhost:${address.port}`;
  const issuer = `http://${host}`;
  const rejectedLogouts: string[] = [];
  const build = (): Provider => {
    const made = makeProvider(issuer, keys, client, people);
    made.on('backchannel.error', (_ctx, error) => rejectedLogouts.push(error.message));
    return made;
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    provider ??= build();
    if (request.url?.startsWith('/interaction/') !== true) return provider.callback()(request, response);
    try {
      await interact(provider, people, request, response);
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  }

  return {
    rejectedLogouts,
    issuer,
    host,
    clientId: CLIENT_ID,
    clientSecret: CLIENT_SECRET,
    register(origin, issuerId, backchannel = `${origin}/v1/auth/sso/${issuerId}/backchannel-logout`) {
      client = {
        ...clientOf([`${origin}/v1/auth/sso/${issuerId}/callback`], [`${origin}/console/sign-in`]),
        backchannel_logout_uri: backchannel,
        backchannel_logout_session_required: true,
      };
      provider = build();
    },
    person(subject, claims, acr) {
      people.set(subject, { claims, acr });
    },
    async rotate() {
      keys = [await signingKey(keys.length + 1), ...keys];
      provider = build();
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

function clientOf(redirects: string[], afterLogout: string[]): ClientMetadata {
  return {
    client_id: CLIENT_ID,
    client_secret: CLIENT_SECRET,
    redirect_uris: redirects.length === 0 ? ['http://localhost/none'] : redirects,
    post_logout_redirect_uris: afterLogout,
    response_types: ['code'],
    grant_types: ['authorization_code'],
  };
}

type People = ReadonlyMap<string, { readonly claims: PersonClaims; readonly acr: string | undefined }>;

function makeProvider(issuer: string, keys: readonly JWK[], client: ClientMetadata, people: People): Provider {
  return new Provider(issuer, {
    clients: [client],
    jwks: { keys: [...keys] },
    acrValues: [...new Set([...people.values()].flatMap(({ acr }) => acr ?? [])), 'urn:example:mfa'],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'groups', 'hd'] },
    // Claims of the person are in the ID token, as most providers have them.
    conformIdTokenClaims: false,
    pkce: { required: () => true },
    cookies: { keys: ['a key of tests'] },
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      rpInitiatedLogout: {
        enabled: true,
        // Its own page loads a font from elsewhere.
        logoutSource: (ctx, form) => {
          ctx.body = `<!doctype html><title>Provider</title>${form}
            <button type="submit" form="op.logoutForm" value="yes" name="logout">Log out at the provider</button>`;
        },
        postLogoutSuccessSource: (ctx) => {
          ctx.body = '<!doctype html><title>Provider</title>Logged out.';
        },
      },
    },
    // Its own options refuse the addresses of this machine.
    fetch: (url, { method, headers, body, redirect, signal } = {}) =>
      globalThis.fetch(url, {
        ...(method === undefined ? {} : { method }),
        ...(headers === undefined ? {} : { headers }),
        ...(body === undefined ? {} : { body }),
        ...(redirect === undefined ? {} : { redirect }),
        ...(signal === undefined ? {} : { signal }),
      }),
    interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
    ttl: { Session: 3600, Grant: 3600, IdToken: 600, AccessToken: 600, Interaction: 600, AuthorizationCode: 60 },
    findAccount: (_ctx, subject) => ({
      accountId: subject,
      claims: () => ({ sub: subject, ...people.get(subject)?.claims }),
    }),
    // Nobody is asked for consent.
    async loadExistingGrant(ctx) {
      const { provider, session } = ctx.oidc;
      const grant = new provider.Grant({ accountId: session?.accountId ?? '', clientId: CLIENT_ID });
      grant.addOIDCScope('openid profile email');
      await grant.save();
      return grant;
    },
  });
}

const FORM = `<!doctype html><title>Provider</title><form method="post"><label>Subject <input name="subject"></label>
  <button>Log in at the provider</button></form>`;

/** The login page: it takes the subject and no password. */
async function interact(
  provider: Provider,
  people: People,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method !== 'POST') {
    response.writeHead(200, { 'content-type': 'text/html' }).end(FORM);
    return;
  }
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  const subject = new URLSearchParams(Buffer.concat(chunks).toString()).get('subject') ?? '';
  const person = people.get(subject);
  if (person === undefined) {
    const refused = { error: 'access_denied', error_description: 'There is no such person.' };
    await provider.interactionFinished(request, response, refused);
    return;
  }
  const login = { accountId: subject, ...(person.acr === undefined ? {} : { acr: person.acr }) };
  await provider.interactionFinished(request, response, { login });
}

/** A browser's cookies by host, for walks through the provider without a browser. */
export class CookieJar {
  readonly #cookies = new Map<string, string>();

  /** Returns the Cookie header for an address; undefined if there are no cookies. */
  header(url: URL): string | undefined {
    const own = [...this.#cookies].filter(([name]) => name.startsWith(`${url.host} `));
    return own.length === 0 ? undefined : own.map(([name, value]) => `${name.split(' ')[1]}=${value}`).join('; ');
  }

  keep(url: URL, lines: readonly string[]): void {
    for (const line of lines) {
      const [pair = '', ...attributes] = line.split(';');
      const at = pair.indexOf('=');
      const [name, value] = [`${url.host} ${pair.slice(0, at).trim()}`, pair.slice(at + 1).trim()];
      const isGone = attributes.some((each) => /max-age=0$|expires=thu, 01 jan 1970/i.test(each.trim()));
      if (value === '' || isGone) this.#cookies.delete(name);
      else this.#cookies.set(name, value);
    }
  }
}

/**
 * Logs a person in at the provider, as its page does, and returns the address of the callback with the provider's
 * answer. It does not call that address.
 * @param at the address of the authorization request
 */
export async function logInAtProvider(at: string, subject: string, jar = new CookieJar()): Promise<string> {
  let url = new URL(at);
  const { host } = url;
  let form: string | undefined;
  for (let hop = 0; hop < 10; hop++) {
    const cookie = jar.header(url);
    const answer = await fetch(url, {
      redirect: 'manual',
      headers: {
        ...(cookie === undefined ? {} : { cookie }),
        ...(form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
      },
      ...(form === undefined ? {} : { method: 'POST', body: form }),
    });
    jar.keep(url, answer.headers.getSetCookie());
    const to = answer.headers.get('location');
    if (to === null && form === undefined && url.pathname.startsWith('/interaction/')) {
      await answer.text();
      form = new URLSearchParams({ subject }).toString();
      continue;
    }
    if (to === null) throw new Error(`the provider answered ${answer.status}: ${await answer.text()}`);
    form = undefined;
    url = new URL(to, url);
    if (url.host !== host) return url.href;
  }
  throw new Error('the provider redirects without end');
}
