/**
 * The demo's traffic of a week and a month: the requests that each client sends in ten minutes, their outcomes, and
 * their tokens. The same time always gives the same numbers.
 */

export const SLOT_MS = 600_000;

/** The busy hours of a client, in the tenant's time zone. */
type Rhythm = 'office' | 'shop' | 'night' | 'now and then';

export interface Denials {
  readonly code:
    | 'denied_by_policy'
    | 'insufficient_permission'
    | 'resource_not_permitted'
    | 'rate_limit_exceeded'
    | 'max_tokens_exceeded';
  /** The part of the client's requests, from 0 to 1. */
  readonly share: number;
  /** Only outside Monday to Friday, 7 to 19 o'clock. */
  readonly isOutOfHours?: true;
}

export interface Client {
  readonly tenant: string;
  /** The name of its API key. */
  readonly key: string;
  readonly model: string;
  /** A route of the route table. */
  readonly route: string;
  readonly rhythm: Rhythm;
  /** Requests in the busiest hour. */
  readonly perHour: number;
  /** Tokens of one request. */
  readonly prompt: number;
  readonly completion: number;
  readonly denials: readonly Denials[];
}

const CHAT = 'POST /v1/chat/completions';

export const CLIENTS: readonly Client[] = [
  {
    tenant: 'acme',
    key: 'checkout-assistant',
    model: 'llama-3',
    route: CHAT,
    rhythm: 'shop',
    perHour: 260,
    prompt: 210,
    completion: 90,
    denials: [
      { code: 'rate_limit_exceeded', share: 0.012 },
      { code: 'max_tokens_exceeded', share: 0.002 },
    ],
  },
  {
    tenant: 'acme',
    key: 'nightly-embeddings',
    model: 'e5-large',
    route: 'POST /v1/embeddings',
    rhythm: 'night',
    perHour: 420,
    prompt: 120,
    completion: 0,
    denials: [{ code: 'resource_not_permitted', share: 0.004 }],
  },
  {
    tenant: 'acme',
    key: 'risk-reports',
    model: 'phi-4',
    route: 'POST /v1/rag/query',
    rhythm: 'office',
    perHour: 60,
    prompt: 900,
    completion: 220,
    denials: [
      { code: 'resource_not_permitted', share: 0.03 },
      { code: 'denied_by_policy', share: 0.2, isOutOfHours: true },
    ],
  },
  {
    tenant: 'acme',
    key: 'support-desk',
    model: 'gpt-oss-20b',
    route: CHAT,
    rhythm: 'shop',
    perHour: 70,
    prompt: 380,
    completion: 180,
    denials: [
      { code: 'denied_by_policy', share: 0.06, isOutOfHours: true },
      { code: 'insufficient_permission', share: 0.015 },
    ],
  },
  {
    tenant: 'acme',
    key: 'code-assistant',
    model: 'llama-3',
    route: CHAT,
    rhythm: 'office',
    perHour: 190,
    prompt: 520,
    completion: 140,
    denials: [{ code: 'insufficient_permission', share: 0.02 }],
  },
  {
    tenant: 'trial',
    key: 'trial-bot',
    model: 'llama-3',
    route: CHAT,
    rhythm: 'now and then',
    perHour: 9,
    prompt: 26,
    completion: 14,
    denials: [{ code: 'rate_limit_exceeded', share: 0.18 }],
  },
];

export interface Slot {
  readonly allowed: number;
  readonly denied: readonly { readonly code: Denials['code']; readonly count: number }[];
}

/**
 * @param startMs of ten minutes, milliseconds since the epoch
 * @param offset minutes that the tenant's clock is ahead of UTC
 */
export function slotOf(client: Client, startMs: number, offset: number): Slot {
  const local = new Date(startMs + offset * 60_000);
  const hour = local.getUTCHours() + local.getUTCMinutes() / 60;
  const isWeekend = [0, 6].includes(local.getUTCDay());
  const isOutOfHours = isWeekend || hour < 7 || hour >= 19;
  const dice = diceFor(`${client.key} ${startMs}`);
  const expected = (client.perHour / 6) * busyness(client.rhythm, hour, isWeekend) * (0.75 + dice() / 2);
  const all = rounded(expected, dice());
  const denied = client.denials
    .map((denial) => ({
      code: denial.code,
      count: denial.isOutOfHours === undefined || isOutOfHours ? rounded(all * denial.share, dice()) : 0,
    }))
    .filter(({ count }) => count > 0);
  return { allowed: Math.max(0, all - denied.reduce((sum, { count }) => sum + count, 0)), denied };
}

/** 0 to 1. */
function busyness(rhythm: Rhythm, hour: number, isWeekend: boolean): number {
  switch (rhythm) {
    case 'office':
      return 0.03 + (isWeekend ? 0.05 : 1) * (bell(hour, 10.5, 2) + 0.85 * bell(hour, 15, 2));
    case 'shop':
      return 0.12 + (isWeekend ? 0.7 : 0.75) * bell(hour, 13, 3.5) + 0.4 * bell(hour, 20, 2);
    case 'night':
      return bell(hour, 2.5, 1.4);
    case 'now and then':
      return isWeekend ? 0.15 : bell(hour, 14, 4);
    default:
      return rhythm satisfies never;
  }
}

function bell(hour: number, middle: number, width: number): number {
  return Math.exp(-(((hour - middle) / width) ** 2) / 2);
}

/** Rounds up or down at random, so that the average of small numbers is right. */
function rounded(n: number, chance: number): number {
  return Math.floor(n + chance);
}

/** Pseudo-random numbers from 0 to 1, which are the same for the same seed: FNV-1a, then mulberry32. */
function diceFor(seed: string): () => number {
  let state = 2_166_136_261;
  for (const character of seed) state = Math.imul(state ^ (character.codePointAt(0) ?? 0), 16_777_619);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
