/** Usage that Envoy AI Gateway reports by `llmRequestCosts`, in access-log entries. */

import { describe, expect, test } from 'vitest';
import { readAccessLog } from '../../src/extauthz/access-log/reader.ts';
import { accessLog, RESERVATION, type Value } from './support/access-log.ts';

const NAMESPACE = 'io.envoy.ai_gateway';
const COSTS = {
  llm_input_token: 11,
  llm_cached_input_token: 3,
  llm_cache_creation_input_token: 2,
  llm_output_token: 22,
  llm_total_token: 33,
  response_model: 'm-2',
};

type Members = Readonly<Record<string, Value>>;

function usageOf(costs: Members, usage?: Members): unknown {
  const told = {
    decision: { reservation: RESERVATION },
    others: { [NAMESPACE]: costs },
    ...(usage === undefined ? {} : { usage }),
  };
  return readAccessLog(accessLog(told)).finished[0]?.usage;
}

describe('usage from Envoy AI Gateway', () => {
  test('is that of its metadata, by the keys of its own examples', () => {
    expect(usageOf(COSTS)).toEqual({
      prompt: 11,
      completion: 22,
      cached: 3,
      cacheWrite: 2,
      total: 33,
      model: 'm-2',
    });
  });

  test('counts as not reported if every number is 0, which the gateway writes for an answer without usage', () => {
    expect(usageOf({ llm_input_token: 0, llm_output_token: 0, llm_total_token: 0 })).toBeUndefined();
  });

  test('may have parts of 0', () => {
    expect(usageOf({ llm_input_token: 5, llm_output_token: 0, llm_total_token: 5 })).toMatchObject({
      prompt: 5,
      completion: 0,
      total: 5,
    });
  });

  test('gives way to the usage that the full profile read from the answer', () => {
    expect(usageOf(COSTS, { total_tokens: 50, prompt_tokens: 20 })).toEqual({
      prompt: 20,
      completion: 30,
      cached: 0,
      cacheWrite: 0,
      total: 50,
      model: undefined,
    });
    expect(usageOf(COSTS, { text_bytes: 9 })).toMatchObject({ total: 33 });
  });

  test.each<[string, Members]>([
    ['costs under other keys', { my_cost: 7, llm_cel_calculated_token: 100_000_000 }],
    ['names of models only', { model_name_override: 'm', response_model: 'm-2' }],
    ['texts in the place of numbers', { llm_total_token: '33' }],
    ['fractions and numbers below 0', { llm_total_token: 1.5, llm_input_token: -1 }],
  ])('is not read from %s', (_name, costs) => {
    expect(usageOf(costs)).toBeUndefined();
  });
});
