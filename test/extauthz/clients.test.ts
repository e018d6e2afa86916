/**
 * grpc-js against the gRPC listener. `npm run bench -- conformance` runs the same cases with grpc-go, grpcio and
 * grpcurl.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { judgeCases } from '../../bench/conformance/clients/cases.ts';
import { runGrpcJs } from '../../bench/conformance/clients/grpc-js.ts';
import { startClientStage } from '../../bench/conformance/clients/stage.ts';
import { TRANSPORTS } from './support/transports.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

describe.each(TRANSPORTS)('on the transport $transport', ({ transport }) => {
  test.each(['plaintext', 'TLS'] as const)(
    'grpc-js passes every case of the gRPC clients over %s',
    async (security) => {
      const directory = mkdtempSync(join(tmpdir(), 'postern-clients-'));
      cleanups.push(() => rmSync(directory, { recursive: true }));
      const stage = await startClientStage(directory, transport, security);
      cleanups.push(() => stage.server.drain(0));
      const whenHeld = (): Promise<void> => {
        const before = stage.held();
        return expect.poll(() => stage.held()).toBeGreaterThan(before);
      };
      const verdicts = judgeCases(await runGrpcJs(stage, whenHeld));
      expect(verdicts.filter(({ passed }) => !passed)).toEqual([]);
      expect(verdicts.length).toBeGreaterThan(0);
      await expect.poll(() => stage.server.calls.open).toBe(0);
      expect(stage.held()).toBe(2);
      expect(stage.server.calls.cancelled + stage.server.calls.expired).toBe(2);
    },
  );
});

test('a case fails if its client reports another status, another answer or nothing', () => {
  const nothing = judgeCases([]);
  const wrong = judgeCases([
    { name: 'a check is allowed', status: 0, answer: '' },
    { name: 'a check is denied', status: 0, answer: '0a00' },
    { name: 'health is SERVING', status: 0, answer: '0802' },
    { name: 'an expired deadline is DEADLINE_EXCEEDED', status: 1, answer: '' },
  ]);
  expect([...nothing, ...wrong].filter(({ passed }) => passed)).toEqual([]);
});
