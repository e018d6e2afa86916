/** What a client is made with. */

import type { SessionEnd } from './session.ts';
import { REAL_TIMING, type Timing } from './timing.ts';
import type { SessionStorage } from './tokens.ts';
import { readBaseUrl } from './url.ts';

export interface ClientOptions {
  /** `https://ai.example.com`. In a browser absent: the page's own origin. */
  readonly baseUrl?: string;
  /** Calls with this key, instead of logging in. */
  readonly apiKey?: string;
  /** `cookie`, for browsers: the refresh token lives in an HttpOnly cookie, where no script can read it. */
  readonly session?: 'memory' | 'cookie';
  /** Keeps a session beyond the life of the program; else its tokens are in memory alone. */
  readonly storage?: SessionStorage;
  /** Told once when a session is over though nobody logged out here. */
  readonly onSessionEnd?: (end: SessionEnd) => void;
  /** Platform administrators: the tenant to act in. */
  readonly tenant?: string;
  /** Of each try, up to the end of its answer. 30 s unless told. */
  readonly timeoutMs?: number;
  /** After the first try; 2 unless told. */
  readonly maxRetries?: number;
  /** A longer Retry-After is not waited for: the call fails and its error tells it. 60 s unless told. */
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

/** @throws TypeError for options that cannot work; it repeats none of them, for they may be secret */
export function readSettings(options: ClientOptions): Settings {
  if (options.session === 'cookie' && options.storage !== undefined) throw new TypeError('A cookie needs no storage.');
  if (options.apiKey !== undefined && (options.session !== undefined || options.storage !== undefined)) {
    throw new TypeError('A client has an API key or a session, not both.');
  }
  return {
    baseUrl: readBaseUrl(options.baseUrl ?? ''),
    // Browsers refuse to have it called on anything but the window.
    fetch: options.fetch ?? ((input, init) => fetch(input, init)),
    timing: options.timing ?? REAL_TIMING,
    timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    maxRetries: options.maxRetries ?? DEFAULT_RETRIES,
    maxRetryAfterMs: options.maxRetryAfterMs ?? DEFAULT_MAX_RETRY_AFTER_MS,
  };
}
