/** Usage that Envoy's own counter reports, in access-log entries. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readAccessLog } from '../../src/extauthz/access-log/reader.ts';
import { runs } from '../support/properties.ts';
import { accessLog, RESERVATION, type Told, tokenUsage } from './support/access-log.ts';

const NAMESPACE = 'envoy.ai.token_usage';
const [COMPLETE, PARTIAL, FAILED] = [1, 2, 3];

/** A message as its sender thinks of it. Absent members are undefined. */
interface Sent {
  readonly model: string;
  readonly input?: number | undefined;
  readonly output?: number | undefined;
  readonly total?: number | undefined;
  readonly cached?: number | undefined;
  readonly written?: number | undefined;
  readonly status: number;
}

const count = (value: number | undefined): object | undefined => (value === undefined ? undefined : { value });
const bytesOf = ({ model, input, output, total, cached, written, status }: Sent): Buffer =>
  tokenUsage({
    model: model === '' ? undefined : model,
    input_tokens: count(input),
    output_tokens: count(output),
    total_tokens: count(1),
    input_token_details: {
      cached_tokens: count(cached),
      cache_creation_tokens: count(written),
      tool_use_tokens: count(7),
    },
    output_token_details: { reasoning_tokens: count(9) },
    provider_total_tokens: count(total),
    extraction_status: status,
  });

function usageOf(native: Buffer, more: Told = {}): unknown {
  const { finished, unreadable } = readAccessLog(
    accessLog({ decision: { reservation: RESERVATION }, typed: { [NAMESPACE]: native }, ...more }),
  );
  expect([finished.length, unreadable]).toEqual([1, 0]);
  return finished[0]?.usage;
}

/** The usage of a message by its meaning. */
function naive({ model, status, ...numbers }: Sent): unknown {
  const known = (value: number | undefined) => (value !== undefined && value <= 1_000_000_000 ? value : undefined);
  const [input, output, total] = [known(numbers.input), known(numbers.output), known(numbers.total)];
  const [cached, written] = [known(numbers.cached) ?? 0, known(numbers.written) ?? 0];
  const prompt = input ?? known(numbers.written);
  if (status !== COMPLETE || (prompt ?? output ?? total) === undefined) return undefined;
  const sum = Math.max(total ?? 0, (prompt === undefined ? 0 : Math.max(prompt, written)) + (output ?? 0));
  const whole = total !== undefined || (prompt !== undefined && output !== undefined);
  const told = prompt === undefined ? undefined : Math.max(prompt, written);
  return {
    prompt: told ?? (total === undefined ? undefined : sum - (output ?? 0)),
    completion: output ?? (total === undefined ? undefined : sum - (told ?? sum)),
    cached,
    cacheWrite: written,
    total: whole ? sum : undefined,
    model: model === '' ? undefined : model,
  };
}

const COUNT = fc.option(fc.oneof(fc.nat(1000), fc.integer({ min: 999_999_999, max: 2 ** 40 })), { nil: undefined });
const SENT: fc.Arbitrary<Sent> = fc.record({
  model: fc.constantFrom('', 'm-2', 'é'.repeat(100)),
  input: COUNT,
  output: COUNT,
  total: COUNT,
  cached: COUNT,
  written: COUNT,
  status: fc.constantFrom(0, COMPLETE, COMPLETE, COMPLETE, PARTIAL, FAILED),
});

const ALL: Sent = { model: 'm-2', input: 235, output: 40, total: 280, cached: 200, written: 30, status: COMPLETE };

describe('usage from Envoy’s own counter', () => {
  test('is the input with the tokens of a cache, the output, and the larger total', () => {
    const usage = { prompt: 235, completion: 40, cached: 200, cacheWrite: 30, total: 280, model: 'm-2' };
    expect(usageOf(bytesOf(ALL))).toEqual(usage);
    expect(usageOf(bytesOf({ ...ALL, total: undefined }))).toEqual({ ...usage, total: 275 });
  });

  test('is that of a naive reader for any message', () => {
    fc.assert(
      fc.property(SENT, (sent) => {
        expect(usageOf(bytesOf(sent))).toEqual(naive(sent));
      }),
      { numRuns: runs(300) },
    );
  });

  test.each([
    ['in part', PARTIAL],
    ['not at all', FAILED],
    ['in a way that it does not tell', 0],
  ])('counts as not reported if Envoy read it %s', (_name, status) => {
    expect(usageOf(bytesOf({ ...ALL, status }))).toBeUndefined();
  });

  test('gives way to the usage that the full profile read from the answer, and precedes that of Envoy AI Gateway', () => {
    const others = { 'io.envoy.ai_gateway': { llm_total_token: 7, llm_input_token: 3 } };
    expect(usageOf(bytesOf(ALL), { usage: { total_tokens: 9, prompt_tokens: 4 }, others })).toMatchObject({ total: 9 });
    expect(usageOf(bytesOf(ALL), { usage: { text_bytes: 9 }, others })).toMatchObject({ total: 280 });
    expect(usageOf(bytesOf({ ...ALL, status: FAILED }), { others })).toMatchObject({ total: 7 });
  });

  test('is not read from another namespace, nor from metadata without a type', () => {
    const typed = { 'envoy.ai.request_info': bytesOf(ALL) };
    expect(usageOf(Buffer.alloc(0), { typed, others: { [NAMESPACE]: { input_tokens: 5 } } })).toBeUndefined();
  });

  test('of any bytes takes no other request’s usage with it', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        const decision = { reservation: RESERVATION };
        const [broken, sound] = [Buffer.from(bytes), bytesOf(ALL)].map((native) => ({
          decision,
          typed: { [NAMESPACE]: native },
        }));
        const { finished, unreadable, whole } = readAccessLog(accessLog(broken ?? {}, sound ?? {}));
        expect([finished.length + unreadable, whole]).toEqual([2, true]);
        expect(finished.at(-1)?.usage).toMatchObject({ total: 280 });
      }),
      { numRuns: runs(300) },
    );
  });
});
