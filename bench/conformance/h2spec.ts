/** h2spec, the conformance suite of HTTP/2 (github.com/summerwind/h2spec), against the gRPC listener's transports. */

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GrpcTransport } from '../../src/extauthz/grpc/server.ts';
import { freePort, isListening, startPinned } from '../stack.ts';
import { installGo } from './go-tools.ts';

const MODULE = 'github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible';
const TIMEOUT_SECONDS = 2;

/** Cases that the built-in transport does not pass, and the section that permits it. */
export const PERMITTED: Readonly<Record<string, string>> = {
  'Sends a dynamic table size update':
    'RFC 7541, section 6.3: a size above the acknowledged SETTINGS_HEADER_TABLE_SIZE (0) is a decoding error',
  'Sends multiple dynamic table size update':
    'RFC 7541, section 6.3: a size above the acknowledged SETTINGS_HEADER_TABLE_SIZE (0) is a decoding error',
  'Sends multiple CONTINUATION frames preceded by a HEADERS frame':
    'RFC 7541, section 2.3.3: h2spec refers to a dynamic table although it acknowledged a size of 0; CONTINUATION itself is tested in test/extauthz/http2/frames.test.ts',
};

export interface Conformance {
  readonly transport: GrpcTransport;
  readonly passed: number;
  readonly total: number;
  /** Cases that failed or were skipped. */
  readonly others: readonly { readonly case: string; readonly outcome: 'failed' | 'skipped' }[];
}

/** Builds h2spec. Throws a sentence when Go or the module is missing. */
export function buildH2spec(directory: string): string {
  return installGo(directory, MODULE);
}

export async function runH2spec(binary: string, directory: string, transport: GrpcTransport): Promise<Conformance> {
  const port = await freePort();
  const server = await startPinned(
    join(import.meta.dirname, '../floors/built-in.ts'),
    [`127.0.0.1:${port}`, '1000', transport],
    {},
    () => isListening(port),
  );
  const report = join(directory, `h2spec-${transport}.xml`);
  const address = ['-h', '127.0.0.1', '-p', String(port), '-P', '/envoy.service.auth.v3.Authorization/Check'];
  // It ends with 1 when a case fails, which is no failure of this run.
  spawnSync(binary, [...address, '--timeout', String(TIMEOUT_SECONDS), '-j', report], { stdio: 'ignore' });
  await server.stop();
  return { transport, ...readReport(readFileSync(report, 'utf8')) };
}

/** Reads a report in the form of JUnit. */
function readReport(xml: string): Omit<Conformance, 'transport'> {
  const cases = [...xml.matchAll(/<testcase\b([^>]*?)(?:\/>|>(.*?)<\/testcase>)/gs)];
  const others: { case: string; outcome: 'failed' | 'skipped' }[] = [];
  for (const [, head = '', content = ''] of cases) {
    const name = /classname="([^"]*)"/.exec(head)?.[1] ?? 'unnamed';
    if (/<(?:failure|error)\b/.test(content)) others.push({ case: name, outcome: 'failed' });
    else if (/<skipped\b/.test(content)) others.push({ case: name, outcome: 'skipped' });
  }
  return { passed: cases.length - others.length, total: cases.length, others };
}
