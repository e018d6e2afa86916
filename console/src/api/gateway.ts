/** Sends one request as a program would: with an API key, through the gateway, without the browser's session. */

export interface Trial {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** JSON. */
  readonly body?: string | undefined;
  /** The model that the body names. */
  readonly model?: string | undefined;
}

export interface TrialAnswer {
  readonly status: number;
  /** True if the body is a problem of Postern or Envoy; false: the platform answered. */
  readonly isProblem: boolean;
  /** The code and detail of an error. */
  readonly code: string | undefined;
  readonly detail: string | undefined;
  readonly requestId: string | undefined;
  /** The rate limit with the fewest requests left; undefined: no rate limit applies. */
  readonly rate: { readonly limit: number; readonly remaining: number; readonly reset: string | undefined } | undefined;
  readonly tookMs: number;
}

const TIMEOUT_MS = 30_000;

/** Does not read a successful answer's body. Rejects with fetch's error if there is no answer within 30 s. */
export async function sendTrial(key: string, { method, path, body }: Trial): Promise<TrialAnswer> {
  const began = performance.now();
  const answer = await fetch(path, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body }),
    credentials: 'omit',
    cache: 'no-store',
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const refusal = answer.ok ? {} : refusalOf(await answer.text());
  if (answer.ok) await answer.body?.cancel();
  return {
    status: answer.status,
    isProblem: answer.headers.get('content-type')?.startsWith('application/problem+json') === true,
    code: refusal.code,
    detail: refusal.detail,
    requestId: answer.headers.get('x-request-id') ?? undefined,
    rate: rateOf(answer.headers),
    tookMs: Math.round(performance.now() - began),
  };
}

/** Reads problem details, or an error in the format of the OpenAI API. */
function refusalOf(text: string): { readonly code?: string | undefined; readonly detail?: string | undefined } {
  const body = parsed(text);
  const error = member(body, 'error');
  const texts = (...values: readonly unknown[]): string | undefined =>
    values.find((value) => typeof value === 'string');
  return {
    code: texts(member(body, 'code'), member(error, 'code')),
    detail: texts(member(body, 'detail'), member(error, 'message')),
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null
    ? Object.entries(value).find(([key]) => key === name)?.[1]
    : undefined;
}

function rateOf(headers: Headers): TrialAnswer['rate'] {
  const limit = headers.get('x-ratelimit-limit-requests');
  const remaining = headers.get('x-ratelimit-remaining-requests');
  if (limit === null || remaining === null) return undefined;
  return {
    limit: Number(limit),
    remaining: Number(remaining),
    reset: headers.get('x-ratelimit-reset-requests') ?? undefined,
  };
}
