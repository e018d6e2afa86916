/** The options of a client. */

import type { SessionEnd } from './session.ts';
import { REAL_TIMING, type Timing } from './timing.ts';
import type { SessionStorage } from './tokens.ts';
import { readBaseUrl } from './url.ts';

export interface ClientOptions {
  /** `https://ai.example.com`. Default, in a browser: the origin of the page. */
  readonly baseUrl?: string;
  /** Sends this key with each request, in place of a login. */
  readonly apiKey?: string;
  /** `cookie`, for browsers: the refresh token is in an HttpOnly cookie, which no script can read. */
  readonly session?: 'memory' | 'cookie';
  /** Keeps the session when the program ends. Default: the tokens are only in memory. */
  readonly storage?: SessionStorage;
  /** Called once if the session ends without a logout of this client. */
  readonly onSessionEnd?: (end: SessionEnd) => void;
  /** The tenant in which a platform administrator acts. */
  readonly tenant?: string;
  /** Bounds each attempt, up to the end of its answer. Default: 30 s. */
  readonly timeoutMs?: number;
  /** The largest number of attempts after the first one. Default: 2. */
  readonly maxRetries?: number;
  /** A call fails if the server's Retry-After is longer. Its error has the seconds. Default: 60 s. */
  readonly maxRetryAfterMs?: number;
  /** For tests, and for programs with a dispatcher of their own. */
  readonly fetch?: typeof fetch;
  readonly timing?: Timing;
}

export interface Settings {
  readonly baseUrl: string;
  readonly fetch: typeof fetch;
  readonly timing: Timing;
  readonly timeoutMs: number;
  readonly maxRetries: number;
  readonly maxRetryAfterMs: number;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_RETRIES = 2;
const DEFAULT_MAX_RETRY_AFTER_MS = 60_000;

/** @throws TypeError for options that cannot work. Its message contains none of them, because they may be secret */
export function readSettings(options: ClientOptions): Settings {
  if (options.session === 'cookie' && options.storage !== undefined) throw new TypeError('A cookie needs no storage.');
  if (options.apiKey !== undefined && (options.session !== undefined || options.storage !== undefined)) {
    throw new TypeError('A client has an API key or a session, not both.');
  }
  return {
    baseUrl: readBaseUrl(options.baseUrl ?? ''),
    // Browsers refuse a call of it on an object other than the window.
    fetch: options.fetch ?? ((input, init) => fetch(input, init)),
    timing: options.timing ?? REAL_TIMING,
    timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    maxRetries: options.maxRetries ?? DEFAULT_RETRIES,
    maxRetryAfterMs: options.maxRetryAfterMs ?? DEFAULT_MAX_RETRY_AFTER_MS,
  };
}
