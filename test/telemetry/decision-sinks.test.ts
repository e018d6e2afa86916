/** The decision log in a file and at a collector. */

import { mkdtempSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CheckCode, CheckOutcome } from '../../src/telemetry/check-outcome.ts';
import { DecisionFile } from '../../src/telemetry/decision-file.ts';
import { DecisionLog } from '../../src/telemetry/decision-log.ts';
import { type DecisionTarget, sinkFor } from '../../src/telemetry/decision-sinks.ts';
import { startLogging } from '../../src/telemetry/log.ts';
import { OtlpExporter } from '../../src/telemetry/otlp/exporter.ts';
import { type OtlpReceiver, startOtlpReceiver } from './support/otlp-receiver.ts';

const outcome = (code: CheckCode, extra: Partial<CheckOutcome> = {}): CheckOutcome => ({
  code,
  requestId: 'req_1',
  startedAtMs: Date.UTC(2026, 10, 23, 1, 2, 3, 4),
  input: undefined,
  clientRequestId: undefined,
  decision: undefined,
  error: undefined,
  tookMs: 0.25,
  ...extra,
});

const SPACES = Buffer.alloc(1024 * 1024, ' ');
let warnings: string[] = [];

function logTo(target: DecisionTarget): DecisionLog {
  const sink = sinkFor(target, startLogging({ level: 'warn', stream: { write: (line) => void warnings.push(line) } }));
  if (sink === undefined) throw new Error('nothing is logged');
  return new DecisionLog({ sink, monotonicMs: () => performance.now(), allowOneIn: 1 });
}

beforeEach(() => {
  warnings = [];
});

describe('the decision log in a file', () => {
  let directory: string;
  let path: string;
  const linesIn = (file: string): unknown[] =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'postern-decisions-'));
    path = join(directory, 'decisions.ndjson');
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  it('is one line of JSON for each decision, appended to what is there, and readable by owner and group only', async () => {
    for (const requestId of ['req_1', 'req_2']) {
      const log = logTo({ kind: 'file', path });
      await log.open();
      log.offer(outcome('no_route', { requestId }));
      await log.close();
    }
    expect(linesIn(path)).toMatchObject([{ request_id: 'req_1' }, { request_id: 'req_2', outcome: 'deny' }]);
    expect(statSync(path).mode & 0o007).toBe(0);
  });

  it('continues in a new file after the old one was renamed', async () => {
    const file = new DecisionFile(path);
    await file.open();
    await file.deliver(Buffer.from('{"n":1}\n'));
    renameSync(path, `${path}.1`);
    let n = 1;
    // The path is compared once a second: lines until then belong to the renamed file.
    await expect
      .poll(
        async () => {
          await file.deliver(Buffer.from(`{"n":${++n}}\n`));
          return statSync(path, { throwIfNoEntry: false }) !== undefined;
        },
        { timeout: 5000 },
      )
      .toBe(true);
    await file.close();
    const all = [...linesIn(`${path}.1`), ...linesIn(path)];
    expect(all).toEqual(Array.from({ length: n }, (_, i) => ({ n: i + 1 })));
  });

  it('names the setting when the file cannot be opened', async () => {
    const log = logTo({ kind: 'file', path: join(directory, 'missing', 'decisions.ndjson') });
    await expect(log.open()).rejects.toThrow(/^log\.decisions\.file: .*missing.* cannot be opened: ENOENT/);
  });

  it('holds whole lines of several processes that append to it', async () => {
    const files = Array.from({ length: 4 }, () => new DecisionFile(path));
    const batch = (writer: number): Buffer =>
      Buffer.from(
        Array.from({ length: 200 }, (_, n) => `${JSON.stringify({ writer, n, text: 'x'.repeat(400) })}\n`).join(''),
      );
    await Promise.all(
      files.map(async (file, writer) => {
        for (let round = 0; round < 5; round++) await file.deliver(batch(writer));
        await file.close();
      }),
    );
    expect(linesIn(path)).toHaveLength(4 * 5 * 200);
  });
});

describe('the decision log at an OpenTelemetry collector', () => {
  let receiver: OtlpReceiver;
  const target = (endpoint: string): DecisionTarget => ({
    kind: 'otlp',
    target: {
      endpoint,
      headers: { authorization: 'Bearer collector' },
      resource: [{ key: 'service.name', value: { stringValue: 'postern' } }],
    },
  });

  beforeEach(async () => {
    receiver = await startOtlpReceiver();
  });
  afterEach(() => receiver.close());

  it('is one record of the log signal for each decision, with its members as attributes', async () => {
    const log = logTo(target(`${receiver.endpoint}/`));
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    log.offer(outcome('no_route', { decision: { kind: 'deny', code: 'no_route', detail: 'nothing is there' } }));
    log.offer(outcome('allow', { requestId: 'req_2', traceId }));
    log.offer(outcome('unavailable', { error: new Error('the store is down') }));
    await log.close();
    expect(receiver.records.map(({ severity }) => severity)).toEqual(['WARN', 'INFO', 'ERROR']);
    const [deny, allow, fault] = receiver.records;
    expect(deny?.resource['service.name']).toBe('postern');
    expect(deny?.timeUnixNano).toBe(`${Date.UTC(2026, 10, 23, 1, 2, 3, 4)}000000`);
    expect(deny?.attributes).toEqual({
      'postern.outcome': 'deny',
      'postern.code': 'no_route',
      'postern.request_id': 'req_1',
      'postern.detail': 'nothing is there',
      'postern.took_ms': 0.25,
    });
    expect(allow).toMatchObject({ traceId, attributes: { 'postern.request_id': 'req_2' } });
    expect(fault?.attributes).toMatchObject({ 'exception.type': 'Error', 'exception.message': 'the store is down' });
    expect(receiver.requests[0]).toMatchObject({
      path: '/v1/logs',
      headers: { 'content-type': 'application/json', authorization: 'Bearer collector' },
    });
    expect(log.dropped).toEqual({ allow: 0, deny: 0, fault: 0 });
  });

  it('is sent again when the collector cannot take it now, and arrives once', async () => {
    receiver.next.push({ status: 503 }, { status: 429 });
    const log = logTo(target(receiver.endpoint));
    log.offer(outcome('no_route'));
    await expect.poll(() => receiver.records.length, { timeout: 8000 }).toBe(1);
    expect(receiver.requests).toHaveLength(3);
    await log.close();
    expect(log.dropped.deny).toBe(0);
  });

  it('counts the records that the collector rejects for good, and sends the next ones', async () => {
    receiver.next.push({ status: 400 });
    const log = logTo(target(receiver.endpoint));
    log.offer(outcome('no_route'));
    await expect.poll(() => log.dropped.deny).toBe(1);
    log.offer(outcome('no_route', { requestId: 'req_2' }));
    await log.close();
    expect(receiver.records.map(({ attributes }) => attributes['postern.request_id'])).toEqual(['req_2']);
  });

  it('takes an answer without an end as accepted, after its beginning', async () => {
    const server = createServer((request, response) => {
      request.resume();
      response.on('drain', () => response.write(SPACES)).write(SPACES);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('the collector has no port');
    try {
      const exporter = new OtlpExporter(
        { endpoint: `http://127.0.0.1:${address.port}`, headers: {}, resource: [] },
        'v1/logs',
        () => undefined,
      );
      await exporter.send('{}');
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });

  it('loses its records if a header is no header, and the reason does not have the header', async () => {
    const lost: unknown[] = [];
    const exporter = new OtlpExporter(
      { endpoint: receiver.endpoint, headers: { authorization: 'Bearer a-secret\nx' }, resource: [] },
      'v1/logs',
      () => undefined,
    );
    await exporter.send('{}').catch((error: unknown) => lost.push(error));
    expect(String(lost)).toContain('otlp.headers');
    expect(String(lost)).not.toContain('a-secret');
  });

  it('warns of records that the collector rejects within a request that it accepts', async () => {
    receiver.next.push({ status: 200, body: '{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"too old"}}' });
    const log = logTo(target(receiver.endpoint));
    log.offer(outcome('no_route'));
    await log.close();
    expect(warnings.join('')).toContain('rejected 2 records');
  });

  it('ends with its process, whether or not a collector answers', async () => {
    receiver.next.push({ status: 200, afterMs: 60_000 });
    const log = logTo(target(receiver.endpoint));
    log.offer(outcome('no_route'));
    await log.close();
    expect(receiver.records).toEqual([]);
  });
});
