/** Pairs of an access token and a refresh token: their requests and their times. */

import { jsonObject, UnexpectedAnswerError } from './errors.ts';
import { type ExchangeParts, exchange, type Outgoing, type Received, received } from './exchange.ts';
import type { RetryRules } from './retry.ts';

/** Plain data that a storage can keep. It is secret. */
export interface Tokens {
  readonly accessToken: string;
  /** Milliseconds since the epoch. */
  readonly expiresAtMs: number;
  /** A use at this time or later requests the next pair. */
  readonly renewAtMs: number;
  /** Absent: it is in a cookie. */
  readonly refreshToken?: string;
}

/** Keeps a session when the program ends. Protect the tokens like a password: their holder acts as the user. */
export interface SessionStorage {
  /** Returns the tokens that any process wrote last. */
  readonly read: () => Promise<Tokens | undefined>;
  /** @param tokens undefined: the session has ended */
  readonly write: (tokens: Tokens | undefined) => Promise<void>;
}

export interface TokenSource {
  login(body: object, signal: AbortSignal | undefined): Promise<Tokens>;
  /** @param refreshToken undefined: the cookie has it */
  refresh(refreshToken: string | undefined): Promise<Tokens>;
  /** Resolves with the address at which a browser also ends its session at a provider. */
  logout(
    refreshToken: string | undefined,
    accessToken: string | undefined,
    signal: AbortSignal | undefined,
  ): Promise<string | undefined>;
}

export interface TokenSourceParts extends ExchangeParts {
  readonly baseUrl: string;
  readonly cookie: boolean;
  readonly timeoutMs: number;
}

const MAX_MARGIN_MS = 30_000;
/**
 * A refresh without an answer is sent again after these times. For ten seconds, the server answers with the same
 * successor. A later repetition would look like theft. The answer to an earlier one still counts.
 */
const REFRESH_AGAIN_MS = [3_000, 6_000];
const REFRESH_RULES = { maxRetries: 2, maxRetryAfterMs: 2_000, withinMs: 8_000 };
const NO_RETRIES = { maxRetries: 0, maxRetryAfterMs: 0 };

export function tokenSource(parts: TokenSourceParts): TokenSource {
  const post = (path: string, body: object, more: Partial<Outgoing>): Promise<Received> => {
    const out = {
      method: 'POST',
      url: `${parts.baseUrl}${path}`,
      headers: { 'content-type': 'application/json', accept: 'application/json', ...more.headers },
      body: JSON.stringify(body),
      cookies: parts.cookie,
      timeoutMs: more.timeoutMs ?? parts.timeoutMs,
      repeatable: more.repeatable ?? false,
      rules: more.rules ?? NO_RETRIES,
      signal: more.signal,
    };
    return exchange(parts, out, received);
  };
  return {
    async login(body, signal) {
      const sentAtMs = parts.timing.now();
      return readTokens(await post('/v1/auth/login', body, { signal }), sentAtMs);
    },
    async refresh(refreshToken) {
      const sentAtMs = parts.timing.now();
      const body = refreshToken === undefined ? {} : { refresh_token: refreshToken };
      const send: SendRefresh = (rules, signal) => post('/v1/auth/refresh', body, { repeatable: true, rules, signal });
      return readTokens(await sentAgain(parts, send), sentAtMs);
    },
    async logout(refreshToken, accessToken, signal) {
      const body = refreshToken === undefined ? {} : { refresh_token: refreshToken };
      const headers: Record<string, string> =
        accessToken === undefined ? {} : { authorization: `Bearer ${accessToken}` };
      const more = { headers, signal, repeatable: true, rules: REFRESH_RULES };
      const { text } = await post('/v1/auth/logout', body, more);
      const url = text === '' ? undefined : jsonObject(text)?.['logout_url'];
      return typeof url === 'string' ? url : undefined;
    },
  };
}

type SendRefresh = (rules: RetryRules, signal: AbortSignal) => Promise<Received>;

/** Resolves with the first answer to a refresh that is sent several times. Rejects like the first of them. */
async function sentAgain({ timing, timeoutMs }: TokenSourceParts, send: SendRefresh): Promise<Received> {
  const settled = new AbortController();
  // With a shorter timeout, the attempts of `exchange` repeat it.
  const times = REFRESH_AGAIN_MS.filter((afterMs) => afterMs < timeoutMs);
  const repeated = new Promise<Received>((resolve) => {
    for (const afterMs of times) {
      timing
        .sleep(afterMs, settled.signal)
        .then(() => send(NO_RETRIES, settled.signal))
        .then(resolve, () => undefined);
    }
  });
  try {
    return await Promise.race([send(REFRESH_RULES, settled.signal), repeated]);
  } finally {
    settled.abort();
  }
}

/** @param sentAtMs the time of the request: the token never counts as valid for longer than it is */
function readTokens({ text }: Received, sentAtMs: number): Tokens {
  const { access_token: accessToken, expires_in: seconds, refresh_token: refreshToken } = jsonObject(text) ?? {};
  if (!isToken(accessToken) || typeof seconds !== 'number' || !(refreshToken === undefined || isToken(refreshToken))) {
    throw new UnexpectedAnswerError('The answer to a login or a refresh has no tokens.');
  }
  const lifeMs = seconds * 1000;
  const expiresAtMs = sentAtMs + lifeMs;
  const renewAtMs = expiresAtMs - Math.min(MAX_MARGIN_MS, lifeMs / 10);
  return { accessToken, expiresAtMs, renewAtMs, ...(refreshToken === undefined ? {} : { refreshToken }) };
}

/**
 * Reports whether an Authorization header may have the text (RFC 6750, section 2.1). Fetch quotes another text in its
 * error.
 */
export function isToken(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Za-z0-9._~+/-]+=*$/.test(value);
}

/**
 * Returns the subject of a token (RFC 7519, section 4.1.2); undefined: it has none. The token is not verified, because
 * subjects are only compared with each other.
 */
export function subjectOf(accessToken: string): string | undefined {
  try {
    const payload = (accessToken.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/');
    const { sub } = jsonObject(atob(payload)) ?? {};
    return typeof sub === 'string' ? sub : undefined;
  } catch {
    return undefined;
  }
}
