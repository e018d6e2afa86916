/**
 * The session of a client: an access token, and the refresh token or the cookie for the next one.
 *
 * `standing` is `unknown` until the first use looks for a session in the cookie or the storage, then `in` or `out`. One
 * refresh runs at a time, and all calls wait for the same one. If the session ends or is replaced before, the new
 * tokens are dropped. A refresh that fails leaves the session as it is, unless the server says that it has ended.
 */

import { ProblemError } from './errors.ts';
import type { Lock } from './lock.ts';
import { orAborted } from './timing.ts';
import { type SessionStorage, subjectOf, type TokenSource, type Tokens } from './tokens.ts';

/**
 * `refused`: the server says that the session has ended. `replaced`: the cookie or the storage has the session of
 * another user.
 */
export interface SessionEnd {
  readonly reason: 'refused' | 'replaced';
}

export interface SessionParts {
  readonly source: TokenSource;
  /** True: the refresh token is in a cookie, and this code never has it. */
  readonly cookie: boolean;
  readonly storage: SessionStorage | undefined;
  readonly lock: Lock;
  readonly now: () => number;
  readonly onEnd: (end: SessionEnd) => void;
}

export interface Session {
  /** Returns an access token, a new one if the last one expires soon; undefined: there is no session. */
  token(signal: AbortSignal | undefined): Promise<string | undefined>;
  /** Returns the token after one that the server refused; undefined: the session has ended. */
  renew(refused: string, signal: AbortSignal | undefined): Promise<string | undefined>;
  login(body: object, signal: AbortSignal | undefined): Promise<void>;
  logout(signal: AbortSignal | undefined): Promise<string | undefined>;
  /** Looks for a session in the cookie or the storage. Resolves with whether there is one. */
  resume(signal: AbortSignal | undefined): Promise<boolean>;
}

/** The time after a failed refresh in which a token that is still valid is used without another attempt. */
const HOLD_OFF_MS = 5_000;

export function makeSession(parts: SessionParts): Session {
  const { source, cookie, storage, lock, now } = parts;
  let standing: 'unknown' | 'in' | 'out' = cookie || storage !== undefined ? 'unknown' : 'out';
  let held: Tokens | undefined;
  /** Grows when a session begins or ends. */
  let era = 0;
  let renewing: Promise<Tokens | undefined> | undefined;
  let heldOffUntilMs = 0;

  const hold = (tokens: Tokens): Tokens => {
    standing = 'in';
    held = tokens;
    heldOffUntilMs = 0;
    return tokens;
  };
  const leave = (): void => {
    era++;
    standing = 'out';
    held = undefined;
  };
  const end = (reason: SessionEnd['reason']): undefined => {
    const began = standing === 'in';
    leave();
    if (began) parts.onEnd({ reason });
  };
  /** Takes the next tokens. Those of another user end the session. */
  const follow = (next: Tokens): Tokens | undefined =>
    held === undefined || isSameUser(held.accessToken, next) ? hold(next) : end('replaced');

  /** @param began the era of the session that it continues */
  async function renewal(began: number): Promise<Tokens | undefined> {
    const stored = era === began ? await storage?.read() : undefined;
    if (era !== began) return held;
    const before = held;
    // Another process was faster.
    if (stored !== undefined && stored.accessToken !== before?.accessToken && now() < stored.renewAtMs)
      return follow(stored);
    const refreshToken = cookie ? undefined : (stored?.refreshToken ?? before?.refreshToken);
    if (!cookie && refreshToken === undefined) return end('refused');
    try {
      const next = await source.refresh(refreshToken);
      if (era !== began) return held;
      const followed = follow(next);
      if (followed !== undefined) await storage?.write(followed);
      return followed;
    } catch (error) {
      heldOffUntilMs = now() + HOLD_OFF_MS;
      if (era === began && isOver(error, cookie)) {
        end('refused');
        // Another process may have stored another session.
        if ((await storage?.read())?.refreshToken === refreshToken) await storage?.write(undefined);
      }
      throw error;
    }
  }

  const renewOnce = (signal: AbortSignal | undefined): Promise<Tokens | undefined> => {
    const began = era;
    renewing ??= lock(() => renewal(began)).finally(() => {
      renewing = undefined;
    });
    return orAborted(renewing, signal);
  };

  async function resume(signal: AbortSignal | undefined): Promise<boolean> {
    if (standing === 'in') return true;
    if (!cookie && storage === undefined) return false;
    try {
      await renewOnce(signal);
    } catch (error) {
      if (!isOver(error, cookie)) throw error;
    }
    return held !== undefined;
  }

  return {
    resume,
    async token(signal) {
      signal?.throwIfAborted();
      if (standing === 'unknown') await resume(signal);
      const current = held;
      if (current === undefined || now() < current.renewAtMs) return current?.accessToken;
      const serves = now() < current.expiresAtMs;
      if (serves && now() < heldOffUntilMs) return current.accessToken;
      try {
        return afterToken(current.accessToken, await renewOnce(signal));
      } catch (error) {
        if (serves && held === current && !signal?.aborted) return current.accessToken;
        throw error;
      }
    },
    async renew(refused, signal) {
      const renewed = held?.accessToken === refused ? await renewOnce(signal) : held;
      return afterToken(refused, renewed);
    },
    login(body, signal) {
      const begin = async (): Promise<void> => {
        const tokens = await source.login(cookie ? { ...body, session: 'cookie' } : body, signal);
        era++;
        hold(tokens);
        await storage?.write(tokens);
      };
      return orAborted(lock(begin), signal);
    },
    logout(signal) {
      const last = held;
      leave();
      const finish = async (): Promise<string | undefined> => {
        const known = last ?? (await storage?.read());
        await storage?.write(undefined);
        if (known === undefined && !cookie) return undefined;
        try {
          return await source.logout(known?.refreshToken, known?.accessToken, signal);
        } catch (error) {
          if (!isOver(error, cookie)) throw error;
          return undefined;
        }
      };
      return orAborted(lock(finish), signal);
    },
  };
}

/** Returns undefined for tokens of another user: a call of one user must not continue as another. */
function afterToken(former: string, next: Tokens | undefined): string | undefined {
  return next !== undefined && isSameUser(former, next) ? next.accessToken : undefined;
}

function isSameUser(former: string, next: Tokens): boolean {
  return subjectOf(former) === subjectOf(next.accessToken);
}

/** Reports whether the session has ended. A browser without the cookie sends no refresh token, which is 422. */
function isOver(error: unknown, cookie: boolean): boolean {
  return error instanceof ProblemError && (error.status === 401 || (cookie && error.status === 422));
}
