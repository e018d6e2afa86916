/** An Istio gateway before Postern's pods without a sidecar: a real Envoy, and a server that keeps every byte. */

import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startConfig } from '../support/envoy.ts';
import { send, startNamedServer } from '../support/http.ts';
import { type Mapping, manifestsOf } from './support/guides.ts';
import { istioBootstrap } from './support/istio.ts';
import { istioManifests } from './support/profiles.ts';

const CREDENTIAL = 'ak_a-credential-that-must-not-be-seen';
const rules = manifestsOf('istio').filter((one) => one['kind'] === 'DestinationRule');

/** Sends one request through the gateway of the guide; returns its status and the bytes that reached Postern's port. */
async function sent(
  destinationRules: readonly Mapping[],
): Promise<{ readonly status: number; readonly bytes: string }> {
  const chunks: Buffer[] = [];
  // A check is a protobuf message in DATA frames, which nothing compresses: a credential in clear text is readable.
  const pod = createServer((socket) => {
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
    });
    socket.on('error', () => undefined);
  });
  pod.listen(0, '127.0.0.1');
  await once(pod, 'listening');
  const address = pod.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const platform = await startNamedServer('upstream');
  const grpc = `127.0.0.1:${address.port}`;
  const edge = await startConfig(
    istioBootstrap(
      { ...istioManifests(), destinationRules },
      { grpc, http: platform.address, upstream: platform.address },
    ),
  );
  onTestFinished(async () => {
    await edge.stop();
    platform.close();
    pod.close();
  });
  const { status } = await send(edge.url, { path: '/v1/models', headers: { authorization: `Bearer ${CREDENTIAL}` } });
  return { status, bytes: Buffer.concat(chunks).toString('latin1') };
}

test('without a DestinationRule, Istio’s gateway sends the credential in clear text to a pod without a sidecar', async () => {
  expect((await sent([])).bytes).toContain(CREDENTIAL);
});

test('with the DestinationRules of the guide, the gateway answers 503, and no credential reaches a pod without a sidecar', async () => {
  expect(rules).toHaveLength(2);
  const { status, bytes } = await sent(rules);
  expect(status).toBe(503);
  expect(bytes).not.toContain(CREDENTIAL);
  // The first byte of TLS: the gateway has tried.
  expect(bytes.charCodeAt(0)).toBe(0x16);
});
