/** gRPC clients against the gRPC listener: each runs every case, on each transport, in plaintext and with TLS. */

import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { cached, pipInstall } from '../../../scripts/lib/tools/cache.ts';
import type { GrpcTransport } from '../../../src/extauthz/grpc/server.ts';
import { buildGo } from '../../stack.ts';
import { installGo } from '../go-tools.ts';
import { CASES, type Ended, judgeCases, type Verdict } from './cases.ts';
import { runGrpcJs } from './grpc-js.ts';
import { runGrpcurl } from './grpcurl.ts';
import { type ClientStage, type Security, startClientStage } from './stage.ts';

const GRPCIO = 'grpcio==1.85.1';
const GRPCURL = 'github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3';
const POLL_MS = 20;
/** How long the server may take to see that a call was given up. */
const SETTLE_LIMIT_MS = 5000;

interface Client {
  readonly name: string;
  run(stage: ClientStage, whenHeld: () => Promise<void>): Promise<readonly Ended[]>;
}

export interface ClientRun {
  readonly client: string;
  readonly transport: GrpcTransport;
  readonly security: Security;
  readonly verdicts: readonly Verdict[];
}

/** Runs all clients. Throws a sentence when a client cannot be built or fetched. */
export async function runClients(directory: string): Promise<readonly ClientRun[]> {
  const clients = await findClients(directory);
  const runs: ClientRun[] = [];
  for (const transport of ['built-in', 'grpc-js'] as const) {
    for (const security of ['plaintext', 'TLS'] as const) {
      await using stage = await startClientStage(join(directory, `${transport}-${security}`), transport, security);
      writeFileSync(join(stage.messages, 'cases.json'), JSON.stringify(CASES));
      for (const client of clients)
        runs.push({ client: client.name, transport, security, verdicts: await runOne(client, stage) });
    }
  }
  return runs;
}

async function findClients(directory: string): Promise<readonly Client[]> {
  const go = buildGo(join(import.meta.dirname, 'grpc-go'), join(directory, 'grpc-go-client'));
  const grpcurl = installGo(directory, GRPCURL);
  const folder = GRPCIO.replace('==', '-');
  const grpcio = await cached(
    folder,
    GRPCIO,
    `"pip install ${GRPCIO}" needs Python 3 with pip, and brings it`,
    (into) => pipInstall(GRPCIO, into, 'with-needs'),
  );
  if (grpcio.kind === 'missing') throw new Error(grpcio.message);
  const script = join(import.meta.dirname, 'grpcio_client.py');
  return [
    { name: 'grpc-js', run: runGrpcJs },
    {
      name: 'grpc-go',
      run: ({ address, messages, ca }) =>
        program(go, ['-addr', address, '-dir', messages, ...(ca === undefined ? [] : ['-ca', ca])], {}),
    },
    {
      name: 'grpcio',
      run: ({ address, messages, ca }) =>
        program('python3', [script, address, messages, ...(ca === undefined ? [] : [ca])], { PYTHONPATH: grpcio.path }),
    },
    { name: 'grpcurl', run: (stage, whenHeld) => runGrpcurl(grpcurl, stage, whenHeld) },
  ];
}

async function program(command: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<readonly Ended[]> {
  const { stdout } = await promisify(execFile)(command, [...args], { env: { ...process.env, ...env } });
  return stdout
    .trim()
    .split('\n')
    .map((line): Ended => JSON.parse(line));
}

/** Adds one case to those of the client: the server has given up the calls that the client gave up. */
async function runOne(client: Client, stage: ClientStage): Promise<readonly Verdict[]> {
  const { server } = stage;
  const gaveUp = (): number => server.calls.cancelled + server.calls.expired;
  const [begunBefore, gaveUpBefore] = [stage.held(), gaveUp()];
  const whenHeld = (): Promise<void> => {
    const before = stage.held();
    return until(() => stage.held() > before);
  };
  const verdicts = judgeCases(await client.run(stage, whenHeld));
  const begun = stage.held() - begunBefore;
  await until(() => server.calls.open === 0 && gaveUp() - gaveUpBefore >= begun);
  const { open } = server.calls;
  const given = gaveUp() - gaveUpBefore;
  return [
    ...verdicts,
    {
      name: 'the server gives up the two calls that the client gave up',
      passed: open === 0 && begun === 2 && given === 2,
      saw: `${begun} begun, ${given} given up, ${open} open`,
    },
  ];
}

async function until(isSo: () => boolean): Promise<void> {
  for (const end = performance.now() + SETTLE_LIMIT_MS; !isSo() && performance.now() < end; await sleep(POLL_MS));
}
