/** The meter's stream to Postern: its own connections, and the reports about requests that still run. */

import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { describe, expect, it } from 'vitest';
import { startUpstream } from '../../src/demo/upstream.ts';
import { type SeenLogEntry, startCheckServer } from '../support/check-server.ts';
import { replacing, startEdge, statOf } from '../support/envoy.ts';
import { send, startServer } from '../support/http.ts';
import { startMeteredEdge } from '../support/metered-edge.ts';
import { linkTo, type TcpLink } from '../support/tcp-link.ts';

const CHAT = '/v1/chat/completions';
/** AccessLogType of envoy/data/accesslog/v3/accesslog.proto. */
const DOWNSTREAM_PERIODIC = 5;
const DOWNSTREAM_END = 6;
/** In place of the 10 s of the files. */
const FREQUENT_REPORTS = replacing({ 'access_log_flush_interval: 10s': 'access_log_flush_interval: 0.1s' });

/** A running chat: its answer has begun and does not end by itself. */
async function openChat(
  port: number,
  headers: Readonly<Record<string, string>>,
  model: string,
): Promise<[ClientRequest, IncomingMessage]> {
  const outgoing = request({ host: '127.0.0.1', port, path: CHAT, method: 'POST', headers, agent: false });
  outgoing.on('error', () => undefined);
  outgoing.end(JSON.stringify({ model, stream: true, messages: [] }));
  const [incoming] = await once(outgoing, 'response');
  incoming.on('error', () => undefined);
  incoming.resume();
  return [outgoing, incoming];
}

describe('the meter', () => {
  it('keeps its stream when the connections of the checks break', async () => {
    const upstream = await startUpstream('127.0.0.1', 0);
    const links: TcpLink[] = [];
    const checksBy = async (address: string): Promise<string> => {
      const link = await linkTo(address);
      links.push(link);
      return link.address;
    };
    const metered = await startMeteredEdge(`127.0.0.1:${upstream.port}`, { checksBy });
    try {
      const headers = { authorization: `Bearer ${metered.world.userToken}`, 'content-type': 'application/json' };
      const ask = (model: string) =>
        send(metered.edge.url, { method: 'POST', path: CHAT, headers, body: JSON.stringify({ model, messages: [] }) });
      expect((await ask('before')).status).toBe(200);
      await metered.finished('before');
      const [outgoing] = await openChat(metered.edge.port, { ...headers, 'x-demo': 'hang-after=1' }, 'open');
      expect((await ask('just-over')).status).toBe(200);
      expect(links[0]?.cut()).toBeGreaterThan(0);
      outgoing.destroy();
      await metered.finished('just-over');
      await metered.finished('open');
      expect(await statOf(metered.edge, 'cluster.postern-meter.upstream_cx_total')).toBe(1);
      expect(await statOf(metered.edge, 'cluster.postern-meter.upstream_cx_destroy')).toBe(0);
    } finally {
      await metered.stop();
      await links[0]?.close();
      await upstream.close();
    }
  });

  it('reports a request that still runs, with the metadata of its allow, and its end', async () => {
    const metadata = { settles: 'yes', reservation: 'r-1', subject: 'usr_1' };
    const checks = await startCheckServer(({ path }) =>
      path === CHAT ? { kind: 'allow', metadata } : { kind: 'allow' },
    );
    const upstream = await startServer((incoming, outgoing) => {
      incoming.resume();
      outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
      outgoing.write('data: {}\n\n');
    });
    const parts = { grpc: checks.address, http: upstream.address, upstream: upstream.address };
    const edge = await startEdge(parts, FREQUENT_REPORTS);
    try {
      const [metered] = await openChat(edge.port, { 'content-type': 'application/json' }, 'm');
      const other = request({ host: '127.0.0.1', port: edge.port, path: '/v1/models', agent: false }).end();
      other.on('error', () => undefined);
      await once(other, 'response');
      const ofType = (wanted: number): SeenLogEntry[] => checks.logged.filter(({ type }) => type === wanted);
      await expect.poll(() => ofType(DOWNSTREAM_PERIODIC).length).toBeGreaterThan(2);
      expect(ofType(DOWNSTREAM_END)).toEqual([]);
      for (const entry of checks.logged) expect(entry).toMatchObject({ intermediate: true, status: 200, metadata });
      metered.destroy();
      other.destroy();
      await expect.poll(() => ofType(DOWNSTREAM_END)).toMatchObject([{ intermediate: false, status: 200, metadata }]);
      expect(checks.logged.at(-1)?.type).toBe(DOWNSTREAM_END);
    } finally {
      await edge.stop();
      checks.close();
      upstream.close();
    }
  });
});
