/**
 * What attacks do to innocent tenants: each attack runs for BENCH_SECONDS against a stand of its own (Envoy with the production
 * configuration, Postern, PostgreSQL, an upstream) beside 200 requests a second of five innocent tenants. BENCH_ATTACKS=1,6 runs a choice.
 * Ends with exit code 1 if a goal is missed.
 */

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { printTable, quantile, type Row, scratch, writeResult } from '../stack.ts';
import type { Aftermath, Ammunition, Attack, Tally, Target } from './attack.ts';
import type { Order } from './attacker-process.ts';
import { ATTACKS } from './attacks/all.ts';
import { INNOCENTS, makeInnocents } from './innocents.ts';
import type { Command, Report, Sent } from './innocents-process.ts';
import { VERDICTS, type Verdict } from './judge.ts';
import { watchMemory } from './processes.ts';
import { openStand, type Stand, stopChild } from './stand.ts';
import { type Comparison, compareUsage, isEqual, LedgerReader } from './usage.ts';

const PER_SECOND = 200;
const ATTACK_MS = Number(process.env['BENCH_SECONDS'] ?? 15) * 1000;
const WARM_MS = 6000;
const QUIET_MS = Math.min(10_000, ATTACK_MS);
/** Requests that were due so soon after the attack still count: it may have left something behind. */
const TAIL_MS = 2000;
/** An attacker that has not ended by then is stopped. */
const ATTACKER_GRACE_MS = 30_000;
/** The innocents' p99 during the attack, of their p99 in the quiet time before it. */
const MOST_P99 = 3;

interface Result {
  readonly attack: number;
  readonly title: string;
  readonly form: string;
  readonly requests: number;
  readonly verdicts: Readonly<Record<Verdict, number>>;
  readonly quietP99Ms: number;
  readonly p99Ms: number;
  readonly usage: readonly Comparison[];
  readonly peakMb: Readonly<Record<string, number>>;
  readonly quietPeakMb: Readonly<Record<string, number>>;
  readonly attackerGot: Tally;
  readonly note: string;
  readonly examples: readonly string[];
  readonly broken: readonly string[];
}

export async function hostile(): Promise<void> {
  const wanted = process.env['BENCH_ATTACKS']?.split(',').map(Number);
  const results: Result[] = [];
  const failed: string[] = [];
  for (const attack of ATTACKS) {
    if (wanted !== undefined && !wanted.includes(attack.number)) continue;
    console.log(`Attack ${attack.number}: ${attack.title}`);
    try {
      const result = await runAttack(attack);
      results.push(result);
      printTable('', [rowOf(result)]);
    } catch (error) {
      failed.push(`${attack.number}: it could not be run to its end: ${error instanceof Error ? error.message : String(error)}`);
      console.error(failed.at(-1));
    }
  }
  if (results.length > 0) printResults(results);
  const broken = [...failed, ...results.flatMap(({ attack, broken: missed }) => missed.map((text) => `${attack}: ${text}`))];
  for (const sentence of broken) console.error(`NOT HELD: attack ${sentence}`);
  if (broken.length > 0) process.exitCode = 1;
  writeResult('hostile', { perSecond: PER_SECOND, attackMs: ATTACK_MS, results, broken });
}

function printResults(results: readonly Result[]): void {
  printTable(
    `Innocents beside an attack: ${PER_SECOND} requests a second of ${INNOCENTS.length} tenants. Goals: no wrong decision, no 503 (attacks 6 and 7: ` +
      `under 0.1 %), p99 at most ${MOST_P99} times the quiet one, usage booked equal to the ledger's`,
    results.map(rowOf),
  );
  printTable('What the attacker got', results.map(attackerRowOf));
}

async function runAttack(attack: Attack): Promise<Result> {
  await using stack = new AsyncDisposableStack();
  const stand = stack.use(await openStand(join(scratch(), 'stand')));
  const mix = await makeInnocents(stand.administrator, stand.http);
  const ammunition = (await attack.prepare?.(stand)) ?? {};
  const ledger = new LedgerReader(stand.ledger);
  stack.defer(() => ledger.stop());
  const innocents = fork(join(import.meta.dirname, 'innocents-process.ts'));
  stack.defer(() => stopChild(innocents));
  const attacker = fork(join(import.meta.dirname, 'attacker-process.ts'));
  stack.defer(() => stopChild(attacker));
  await once(attacker, 'message');

  send(innocents, { kind: 'start', edge: stand.edge, perSecond: PER_SECOND, mix });
  await sleep(WARM_MS);
  const roots = { Envoy: stand.envoy.pid, Postern: stand.postern.pid };
  const quietMemory = watchMemory(roots);
  const quietFromMs = Date.now();
  await sleep(QUIET_MS);
  quietMemory.stop();
  const memory = watchMemory(roots);
  stack.defer(() => memory.stop());
  const fromMs = Date.now();
  const durationMs = attack.durationMs?.(fromMs) ?? ATTACK_MS;
  if (ammunition.cold !== undefined) send(innocents, { kind: 'add', requests: ammunition.cold, overMs: durationMs });
  const attackerGot = await letLoose(attacker, attack, stand, ammunition, fromMs + durationMs);
  await sleep(TAIL_MS);
  const untilMs = Date.now();
  const reported = once(innocents, 'message');
  send(innocents, { kind: 'stop' });
  const [report] = (await reported) as [Report];

  const aftermath: Aftermath = (await attack.after?.(stand)) ?? { note: '', broken: [] };
  const usage = await compareUsage(stand.administrator, ledger, INNOCENTS);
  const attacked = report.sent.filter(([dueMs]) => dueMs >= fromMs && dueMs < untilMs);
  const quiet = report.sent.filter(([dueMs]) => dueMs >= quietFromMs && dueMs < fromMs);
  const verdicts = countVerdicts(attacked);
  const figures = { verdicts, requests: attacked.length, quietP99Ms: p99(quiet), p99Ms: p99(attacked), usage };
  return {
    attack: attack.number,
    title: attack.title,
    form: ammunition.form ?? '',
    ...figures,
    peakMb: memory.peakMb,
    quietPeakMb: quietMemory.peakMb,
    attackerGot,
    note: aftermath.note,
    examples: report.examples.filter(({ dueMs }) => dueMs >= quietFromMs).map(({ text }) => text),
    broken: [...missedGoals(attack, stand, figures), ...aftermath.broken],
  };
}

function send(child: ChildProcess, message: Command | Order): void {
  child.send(message);
}

async function letLoose(
  child: ChildProcess,
  attack: Attack,
  stand: Stand,
  ammunition: Ammunition,
  untilMs: number,
): Promise<Tally> {
  const target: Target = { edge: stand.edge, mesh: stand.mesh, http: stand.http };
  const ended = Promise.race([once(child, 'message'), once(child, 'exit')]);
  send(child, { number: attack.number, target, ammunition: { ...ammunition, cold: [] }, untilMs });
  const [tally] = await Promise.race([ended, sleep(untilMs - Date.now() + ATTACKER_GRACE_MS, [undefined])]);
  return typeof tally === 'object' && tally !== null ? (tally as Tally) : { 'ended without a report': 1 };
}

function countVerdicts(sent: readonly Sent[]): Record<Verdict, number> {
  const counts: Record<Verdict, number> = { right: 0, wrong: 0, unavailable: 0, empty: 0, lost: 0 };
  for (const [, , index] of sent) {
    const verdict = VERDICTS[index];
    if (verdict !== undefined) counts[verdict] += 1;
  }
  return counts;
}

function p99(sent: readonly Sent[]): number {
  return quantile(
    sent.map(([, tookMs]) => tookMs),
    0.99,
  );
}

type Figures = Pick<Result, 'verdicts' | 'requests' | 'quietP99Ms' | 'p99Ms' | 'usage'>;

function missedGoals(attack: Attack, stand: Stand, { verdicts, requests, quietP99Ms, p99Ms, usage }: Figures): string[] {
  const missed: string[] = [];
  const without = verdicts.unavailable + verdicts.empty + verdicts.lost;
  if (verdicts.wrong > 0) missed.push(`${verdicts.wrong} wrong decisions`);
  if (without > requests * (attack.mayFail ?? 0))
    missed.push(`${without} of ${requests} innocent requests got a 503 or no answer`);
  if (p99Ms > MOST_P99 * quietP99Ms) missed.push(`p99 ${p99Ms.toFixed(1)} ms, quiet ${quietP99Ms.toFixed(1)} ms`);
  const unequal = usage.filter((each) => !isEqual(each));
  if (unequal.length > 0) missed.push(`usage of ${unequal.map(({ tenant }) => tenant).join(', ')} is not the ledger's`);
  if (!stand.postern.isRunning()) missed.push(`Postern ended: ${stand.postern.log().trim().split('\n').at(-1)}`);
  return missed;
}

function rowOf({ attack, title, requests, verdicts, quietP99Ms, p99Ms, usage, peakMb, quietPeakMb }: Result): Row {
  const sum = (of: 'booked' | 'ledger'): number => usage.reduce((tokens, each) => tokens + each[of].total_tokens, 0);
  return {
    attack: `${attack} ${title}`,
    requests,
    wrong: verdicts.wrong,
    '503': verdicts.unavailable,
    'empty 503': verdicts.empty,
    lost: verdicts.lost,
    'p99 ms': p99Ms.toFixed(1),
    quiet: quietP99Ms.toFixed(1),
    times: (p99Ms / quietP99Ms).toFixed(1),
    booked: sum('booked'),
    ledger: sum('ledger'),
    'Envoy MB': `${quietPeakMb['Envoy']} to ${peakMb['Envoy']}`,
    'Postern MB': `${quietPeakMb['Postern']} to ${peakMb['Postern']}`,
  };
}

function attackerRowOf({ attack, form, attackerGot, note }: Result): Row {
  const got = Object.entries(attackerGot)
    .sort(([, a], [, b]) => b - a)
    .map(([name, times]) => `${times} x ${name}`);
  return { attack, 'in the form': form, got: [...got, ...(note === '' ? [] : [note])].join(', ') };
}
