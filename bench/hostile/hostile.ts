/**
 * The effect of attacks on innocent tenants: each attack runs for BENCH_SECONDS against a stand of its own (Envoy with
 * the production configuration, Postern, PostgreSQL, an upstream) beside 200 requests a second of five innocent
 * tenants. BENCH_ATTACKS=1,6 runs a choice. Ends with exit code 1 if a goal is missed.
 */

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { printTable, type Row, scratch, writeResult } from '../stack.ts';
import type { Aftermath, Ammunition, Attack, Tally, Target } from './attack.ts';
import type { Order } from './attacker-process.ts';
import { ATTACKS } from './attacks/all.ts';
import { INNOCENTS, makeInnocents } from './innocents.ts';
import type { Report } from './innocents-process.ts';
import { VERDICTS } from './judge.ts';
import { type Figures, figuresOf, PER_SECOND, startLoad, undecided } from './load.ts';
import { watchMemory } from './processes.ts';
import { openStand, type Stand, stopChild } from './stand.ts';
import { type Comparison, compareUsage, isEqual, LedgerReader } from './usage.ts';

const ATTACK_MS = Number(process.env['BENCH_SECONDS'] ?? 15) * 1000;
const WARM_MS = 6000;
const QUIET_MS = Math.min(10_000, ATTACK_MS);
/** Requests that were due so soon after the attack still count: it may have left something behind. */
const TAIL_MS = 2000;
/** The time after which a running attacker is stopped. */
const ATTACKER_GRACE_MS = 30_000;
/** The innocents' p99 during the attack, of their p99 in the quiet time before it. */
const MOST_P99 = 3;
const KEPT_EXAMPLES = 10;
const NOTHING: Aftermath = { note: '', broken: [] };

interface Result {
  readonly attack: number;
  readonly title: string;
  readonly form: string;
  readonly quiet: Figures;
  readonly attacked: Figures;
  readonly usage: readonly Comparison[];
  readonly quietPeakMb: Readonly<Record<string, number>>;
  readonly peakMb: Readonly<Record<string, number>>;
  readonly attackerGot: Tally;
  readonly note: string;
  /** Answers that were not right. */
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
      failed.push(`${attack.number}: it could not be run to its end: ${inspect(error)}`);
    }
  }
  if (results.length > 0) printResults(results);
  const broken = [
    ...failed,
    ...results.flatMap(({ attack, broken: missed }) => missed.map((text) => `${attack}: ${text}`)),
  ];
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
  const stand = stack.use(await openStand(join(scratch(), 'stand'), { traces: attack.traces }));
  const mix = await makeInnocents(stand.administrator, stand.http);
  const ammunition = (await attack.prepare?.(stand)) ?? {};
  const ledger = new LedgerReader(stand.ledger);
  stack.defer(() => ledger.stop());
  const attacker = fork(join(import.meta.dirname, 'attacker-process.ts'));
  stack.defer(() => stopChild(attacker));
  await once(attacker, 'message');

  const load = stack.use(startLoad(stand.edge, mix));
  await sleep(WARM_MS);
  const roots = { Envoy: stand.envoy.pid, Postern: stand.postern.pid };
  const quietMemory = watchMemory(roots);
  const quietFromMs = Date.now();
  const [quietCold, attackedCold] = inProportion(ammunition.cold ?? [], QUIET_MS, ATTACK_MS);
  load.add(quietCold, QUIET_MS);
  await sleep(QUIET_MS);
  quietMemory.stop();
  const memory = watchMemory(roots);
  stack.defer(() => memory.stop());
  const fromMs = Date.now();
  const durationMs = attack.durationMs?.(fromMs) ?? ATTACK_MS;
  load.add(attackedCold, durationMs);
  const attackerGot = await letLoose(attacker, attack, stand, ammunition, fromMs + durationMs);
  await sleep(TAIL_MS);
  const untilMs = Date.now();
  const report = await load.stop();

  const hasEnded = !stand.postern.isRunning();
  const aftermath: Aftermath = hasEnded
    ? { note: '', broken: [`Postern ended: ${stand.postern.log().trim().replaceAll(/\s+/g, ' ')}`] }
    : ((await attack.after?.(stand, attackerGot)) ?? NOTHING);
  const usage = hasEnded ? [] : await compareUsage(stand.administrator, ledger, INNOCENTS);
  const quiet = figuresOf(report, quietFromMs, fromMs);
  const attacked = figuresOf(report, fromMs, untilMs);
  return {
    attack: attack.number,
    title: attack.title,
    form: ammunition.form ?? '',
    quiet,
    attacked,
    usage,
    quietPeakMb: quietMemory.peakMb,
    peakMb: memory.peakMb,
    attackerGot,
    note: aftermath.note,
    examples: examplesOf(report, fromMs),
    broken: [...missedGoals(attack, quiet, attacked, usage), ...aftermath.broken],
  };
}

/**
 * Splits requests between two times so that both have the same number per second: otherwise their quantiles are of
 * different requests.
 */
function inProportion<T>(
  all: readonly T[],
  firstMs: number,
  secondMs: number,
): readonly [first: readonly T[], second: readonly T[]] {
  const at = Math.round((all.length * firstMs) / (firstMs + secondMs));
  return [all.slice(0, at), all.slice(at)];
}

/** Some of each verdict, since the attack began. */
function examplesOf({ examples }: Report, fromMs: number): string[] {
  const since = examples.filter(({ dueMs }) => dueMs >= fromMs);
  return VERDICTS.flatMap((wanted) => since.filter(({ verdict }) => verdict === wanted).slice(0, KEPT_EXAMPLES)).map(
    ({ text }) => text,
  );
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
  const order: Order = { number: attack.number, target, ammunition: { ...ammunition, cold: [] }, untilMs };
  child.send(order);
  const [tally] = await Promise.race([ended, sleep(untilMs - Date.now() + ATTACKER_GRACE_MS, [undefined])]);
  if (typeof tally !== 'object' || tally === null) throw new Error('the attacker ended without a report');
  return tally as Tally;
}

function missedGoals(attack: Attack, quiet: Figures, attacked: Figures, usage: readonly Comparison[]): string[] {
  const missed: string[] = [];
  const { requests, verdicts, p99Ms } = attacked;
  const without = undecided(attacked);
  if (verdicts.wrong > 0) missed.push(`${verdicts.wrong} wrong decisions`);
  if (without > requests * (attack.mayFail ?? 0))
    missed.push(`${without} of ${requests} innocent requests got a 503 or no answer`);
  if (p99Ms > MOST_P99 * quiet.p99Ms) missed.push(`p99 ${p99Ms.toFixed(1)} ms, quiet ${quiet.p99Ms.toFixed(1)} ms`);
  const unequal = usage.filter((each) => !isEqual(each));
  if (unequal.length > 0) missed.push(`usage of ${unequal.map(({ tenant }) => tenant).join(', ')} is not the ledger's`);
  return missed;
}

function rowOf({
  attack,
  title,
  quiet,
  attacked: { requests, verdicts, p99Ms },
  usage,
  peakMb,
  quietPeakMb,
}: Result): Row {
  const sum = (of: 'booked' | 'ledger'): number => usage.reduce((tokens, each) => tokens + each[of].total_tokens, 0);
  return {
    attack: `${attack} ${title}`,
    requests,
    wrong: verdicts.wrong,
    '503s': verdicts.unavailable,
    'empty 503s': verdicts.empty,
    lost: verdicts.lost,
    'p99 ms': p99Ms.toFixed(1),
    'quiet p99 ms': quiet.p99Ms.toFixed(1),
    times: (p99Ms / quiet.p99Ms).toFixed(1),
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
