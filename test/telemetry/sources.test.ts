/** The metrics of the HTTP API, of the database's pools and statements, and of the build. */

import { expect, it, onTestFinished } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { trustProxies } from '../../src/http/client-address.ts';
import { publicEndpoint } from '../../src/http/endpoint.ts';
import { createHttp } from '../../src/http/server.ts';
import { openDatabase } from '../../src/store/database.ts';
import { createTelemetry, type Telemetry } from '../../src/telemetry/telemetry.ts';
import { freshDatabase } from '../support/database.ts';

async function samples(telemetry: Telemetry, start: string): Promise<readonly string[]> {
  return (await telemetry.metrics.exposition()).split('\n').filter((line) => line.startsWith(start));
}

it('the API counts requests by the template of their route, and paths of clients make no series', async () => {
  const telemetry = createTelemetry({ level: 'silent' });
  const route = publicEndpoint({
    method: 'GET',
    path: '/things/:id',
    operationId: 'getThing',
    summary: 'Returns a thing.',
    answers: { 204: { description: 'There.' } },
    handler: async () => ({ status: 204 }),
  });
  const http = createHttp(
    {
      resolver: { resolve: () => Promise.reject(new Error('no caller is resolved')) },
      now: Date.now,
      random: (size) => new Uint8Array(size),
      trusted: trustProxies([]),
      onAnswered: telemetry.httpRequest,
    },
    [route],
  );
  onTestFinished(() => http.close());
  for (const url of ['/things/1', '/things/2', '/things/3?a=1', '/other/1', '/other/2', '/%zz'])
    await http.inject({ url });
  await http.inject({ url: '/things/1', method: 'PUT' });
  expect(new Set(await samples(telemetry, 'postern_http_requests_total{'))).toEqual(
    new Set([
      'postern_http_requests_total{method="GET",route="/things/:id",status="204"} 2',
      'postern_http_requests_total{method="GET",route="/things/:id",status="400"} 1',
      'postern_http_requests_total{method="any",route="none",status="404"} 3',
      'postern_http_requests_total{method="any",route="none",status="405"} 1',
    ]),
  );
  expect(await samples(telemetry, 'postern_http_request_duration_seconds_count')).toEqual([
    'postern_http_request_duration_seconds_count 7',
  ]);
});

it('the database shows its connections, callers that wait for one, and statements by outcome', async () => {
  const telemetry = createTelemetry({ level: 'silent' });
  const fresh = await freshDatabase();
  onTestFinished(() => fresh.close());
  const db = openDatabase({ url: fresh.url, poolMax: 1, reports: telemetry.database });
  const connection = await db.pool.acquire().promise;
  const waiting = db.query({ text: 'select 1' });
  expect(await samples(telemetry, 'postern_database_connections')).toEqual([
    'postern_database_connections{state="used"} 1',
    'postern_database_connections{state="idle"} 0',
    'postern_database_connections{state="max"} 1',
  ]);
  expect(await samples(telemetry, 'postern_database_waiting')).toEqual(['postern_database_waiting 1']);
  db.pool.release(connection);
  await waiting;
  await expect(db.query({ text: 'select 1 / 0' })).rejects.toThrow();
  expect(await samples(telemetry, 'postern_database_statements_total')).toEqual([
    'postern_database_statements_total{outcome="success"} 1',
    'postern_database_statements_total{outcome="error"} 1',
    'postern_database_statements_total{outcome="fault"} 0',
  ]);
  await db.close();
  expect(await samples(telemetry, 'postern_database_connections{state="max"}')).toEqual([
    'postern_database_connections{state="max"} 0',
  ]);
});

it('the build shows its version', async () => {
  const [line] = await samples(createTelemetry({ level: 'silent' }), 'postern_build_info{');
  expect(line).toBe(`postern_build_info{version="${manifest.version}",node="${process.versions.node}"} 1`);
});
