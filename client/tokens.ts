/** A pair of tokens: how it is asked for, and how long it is good for. */

import { jsonObject, UnexpectedAnswerError } from './errors.ts';
import { type ExchangeParts, exchange, type Outgoing, type Received, received } from './exchange.ts';
import type { RetryRules } from './retry.ts';

/** Plain data, so that a storage can keep it as it is. It is secret as a whole. */
export interface Tokens {
  readonly accessToken: string;
  /** Milliseconds since the epoch. */
  readonly expiresAtMs: number;
  /** From then on the next use asks for the next pair. */
  readonly renewAtMs: number;
  /** Absent where it is in a cookie. */
  readonly refreshToken?: string;
}

/** Keeps a session beyond the life of the program. What it is given lets its holder act as the user: keep it as a password is kept. */
export interface SessionStorage {
  /** What was written last, by any process. */
  readonly read: () => Promise<Tokens | undefined>;
  /** Undefined: the session is over. */
  readonly write: (tokens: Tokens | undefined) => Promise<void>;
}

export interface TokenSource {
  login(body: object, signal: AbortSignal | undefined): Promise<Tokens>;
  /** @param refreshToken absent: the cookie */
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
 * A refresh without an answer is sent again after these times: for ten seconds the server gives the same successor, and a later one would
 * look like theft. The earlier ones are still waited for, because a slow answer is as good as a repeated one.
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

/** The first answer to a refresh that is sent again while there is none. The first sending decides if none is answered. */
async function sentAgain({ timing, timeoutMs }: TokenSourceParts, send: SendRefresh): Promise<Received> {
  const settled = new AbortController();
  // A shorter timeout repeats it by itself.
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

/** @param sentAtMs when it was asked for: counted from then, the token is never believed to live longer than it does */
function readTokens({ text }: Received, sentAtMs: number): Tokens {
  const { access_token: accessToken, expires_in: seconds, refresh_token: refreshToken } = jsonObject(text) ?? {};
  if (!isToken(accessToken) || typeof seconds !== 'number' || !(refreshToken === undefined || isToken(refreshToken))) {
    throw new UnexpectedAnswerError('The answer to a login or a refresh holds no tokens.');
  }
  const lifeMs = seconds * 1000;
  const expiresAtMs = sentAtMs + lifeMs;
  const renewAtMs = expiresAtMs - Math.min(MAX_MARGIN_MS, lifeMs / 10);
  return { accessToken, expiresAtMs, renewAtMs, ...(refreshToken === undefined ? {} : { refreshToken }) };
}

/** What may stand in an Authorization header (RFC 6750, section 2.1); anything else would be repeated in the error of whoever sends it. */
export function isToken(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Za-z0-9._~+/-]+=*$/.test(value);
}

/** Who a token is for (RFC 7519, section 4.1.2); undefined when it does not say so. It is read, not verified: nothing hangs on it but a comparison. */
export function subjectOf(accessToken: string): string | undefined {
  try {
    const payload = (accessToken.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/');
    const { sub } = jsonObject(atob(payload)) ?? {};
    return typeof sub === 'string' ? sub : undefined;
  } catch {
    return undefined;
  }
}
