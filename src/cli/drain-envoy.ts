/**
 * `postern envoy drain`: the container that Kubernetes ends first in a pod of Envoy. Envoy itself closes every request
 * at SIGTERM, and Kubernetes ends sidecar containers only after the others, so Envoy lives as long as this process:
 * until its requests have ended.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { hostAndPort } from '../config/listening.ts';
import { duration, tcpAddress } from '../config/parsers.ts';
import { type Arguments, parsedOption, UsageError } from './arguments.ts';
import { stopSignal } from './signals.ts';

const POLL_MS = 500;
const MAX_TIMER_MS = 2 ** 31 - 1;
const ADMIN_TIMEOUT_MS = 1_000;
/** Envoy reports a finished request up to 0.2 s later, so a single count of zero requests is too early. */
const IDLE_COUNTS = 2;

interface Drain {
  /** `http://host:port` of Envoy's admin interface. */
  readonly adminUrl: string;
  /** The minimum duration. New connections still arrive at first, because proxies learn late that the pod ends. */
  readonly noticeMs: number;
  /** The maximum duration. */
  readonly limitMs: number;
}

/** Waits for SIGTERM, then until Envoy has drained. Resolves with 1 if requests had not ended. */
export async function drainEnvoyCommand(args: Arguments): Promise<number> {
  const adminUrl = `http://${hostAndPort(parsedOption(args, 'admin', tcpAddress))}`;
  const [noticeMs, limitMs] = [parsedOption(args, 'notice', duration), parsedOption(args, 'limit', duration)];
  if (limitMs < noticeMs) throw new UsageError('--limit must be at least --notice.');
  // A handler of a signal does not keep a process running.
  const waiting = setInterval(() => undefined, MAX_TIMER_MS);
  const stopped = stopSignal();
  process.stdout.write(
    `Envoy drains when this process gets SIGTERM: at least ${noticeMs / 1_000} s, at most ${limitMs / 1_000} s.\n`,
  );
  await stopped;
  clearInterval(waiting);
  return drainEnvoy({ adminUrl, noticeMs, limitMs });
}

/** Without an answer of the admin interface, Envoy counts as busy: it must not end before its requests. */
async function drainEnvoy({ adminUrl, noticeMs, limitMs }: Drain): Promise<number> {
  const start = performance.now();
  let draining = false;
  let idleCounts = 0;
  for (;;) {
    // Envoy still accepts connections. With each response it asks the client to open another one, which reaches another
    // pod.
    draining ||= (await requestAdmin(adminUrl, 'POST', '/healthcheck/fail')) !== undefined;
    const requests = draining ? await openRequests(adminUrl) : undefined;
    idleCounts = requests === 0 ? idleCounts + 1 : 0;
    const elapsedMs = performance.now() - start;
    if (idleCounts >= IDLE_COUNTS && elapsedMs >= noticeMs) return 0;
    if (elapsedMs >= limitMs) return unfinished(adminUrl, requests, elapsedMs);
    await sleep(Math.min(POLL_MS, limitMs - elapsedMs));
  }
}

function unfinished(adminUrl: string, requests: number | undefined, elapsedMs: number): number {
  const seconds = Math.round(elapsedMs / 1_000);
  process.stderr.write(
    requests === undefined
      ? `Envoy's admin interface at ${adminUrl} has not said within ${seconds} s how many requests are open.\n`
      : `Envoy closes the requests that have not ended after ${seconds} s: ${requests}.\n`,
  );
  return 1;
}

/** Returns the number of open requests, streams and upgraded connections; undefined if Envoy does not report it. */
async function openRequests(adminUrl: string): Promise<number | undefined> {
  const text = await requestAdmin(adminUrl, 'GET', '/stats?filter=^http%5C..*%5C.downstream_rq_active$');
  const counts = [...(text ?? '').matchAll(/^http\.(.*)\.downstream_rq_active: (\d+)$/gm)];
  // Envoy counts this request too, so no count at all means that it does not keep the statistic.
  if (counts.length === 0) return undefined;
  return counts.filter(([, prefix]) => prefix !== 'admin').reduce((sum, [, , count]) => sum + Number(count), 0);
}

/** Returns the body of a response with the status 200. */
async function requestAdmin(adminUrl: string, method: 'GET' | 'POST', path: string): Promise<string | undefined> {
  try {
    const response = await fetch(adminUrl + path, { method, signal: AbortSignal.timeout(ADMIN_TIMEOUT_MS) });
    return response.ok ? await response.text() : undefined;
  } catch {
    return undefined;
  }
}
