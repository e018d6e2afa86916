/** grpc-js (`@grpc/grpc-js`) as a client of the gRPC listener. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, credentials, type ServiceError, status } from '@grpc/grpc-js';
import { CASES, type ClientCase, type Ended } from './cases.ts';
import type { ClientStage } from './stage.ts';

const asIs = (bytes: Buffer): Buffer => bytes;
/** No case takes this long on a busy machine. */
const LIMIT_MS = 30_000;

/** @param whenHeld resolves when the server has begun one more check that it does not answer */
export async function runGrpcJs(stage: ClientStage, whenHeld: () => Promise<void>): Promise<readonly Ended[]> {
  const { address, ca, messages } = stage;
  const channel = ca === undefined ? credentials.createInsecure() : credentials.createSsl(readFileSync(ca));
  const client = new Client(address, channel, {
    'grpc.ssl_target_name_override': 'localhost',
    'grpc.max_send_message_length': -1,
  });
  const ended: Ended[] = [];
  try {
    for (const each of CASES)
      ended.push(await runCase(client, each, readFileSync(join(messages, `${each.message}.bin`)), whenHeld));
  } finally {
    client.close();
  }
  return ended;
}

async function runCase(
  client: Client,
  each: ClientCase,
  message: Buffer,
  whenHeld: () => Promise<void>,
): Promise<Ended> {
  const { name, method, deadlineMs, isCancelled } = each;
  const { promise, resolve } = Promise.withResolvers<Ended>();
  const begun = isCancelled ? whenHeld() : undefined;
  const options = { deadline: Date.now() + (deadlineMs === 0 ? LIMIT_MS : deadlineMs) };
  const call = client.makeUnaryRequest(
    method,
    asIs,
    asIs,
    message,
    options,
    (error: ServiceError | null, answer?: Buffer) => {
      resolve({ name, status: error?.code ?? status.OK, answer: answer?.toString('hex') ?? '' });
    },
  );
  await begun;
  if (isCancelled) call.cancel();
  return promise;
}
