import { describe, expect, test } from 'vitest';
import { SLICE_MS, Slices } from '../../src/credential-cache/slices.ts';
import type { Steps } from '../../src/domain/steps.ts';

const always = () => true;

/** Slices over a clock and an event loop that the test turns; each step takes a millisecond. */
function someSlices() {
  const clock = { nowMs: 0 };
  const done: string[] = [];
  const calls: { readonly call: () => void; readonly ms: number }[] = [];
  const slices = new Slices({ monotonicMs: () => clock.nowMs, later: (call, ms) => calls.push({ call, ms }) });
  function* work(name: string, steps: number): Steps<{ readonly name: string }> {
    for (let step = 1; step <= steps; step++) {
      clock.nowMs += 1;
      done.push(`${name}${step}`);
      if (step < steps) yield;
    }
    return { name };
  }
  /** Runs one turn of the event loop. Returns the steps that ran and the pauses before them. */
  const turn = (): { readonly did: string[]; readonly pausesMs: number[] } => {
    const from = done.length;
    const due = calls.splice(0);
    for (const { call } of due) call();
    return { did: done.slice(from), pausesMs: due.map(({ ms }) => ms) };
  };
  const run = (name: string, steps: number, wanted = always) => slices.run(work(name, steps), wanted);
  return { slices, run, turn, done, clock };
}

describe('slices', () => {
  test('work that fits into the slice is done at once, and its result is no promise', () => {
    const { run, done } = someSlices();
    expect(run('a', 2)).toEqual({ value: { name: 'a' }, spentMs: 2 });
    expect(done).toEqual(['a1', 'a2']);
  });

  test('several pieces of work in one turn share one slice', async () => {
    const { run, turn, done } = someSlices();
    run('a', 1);
    run('b', 1);
    const third = run('c', 1);
    expect(done).toEqual(['a1', 'b1']);
    expect(third).toBeInstanceOf(Promise);
    expect(turn().did).toEqual(['c1']);
    expect(await third).toEqual({ value: { name: 'c' }, spentMs: 1 });
  });

  test('long work takes one slice in each turn, and pauses as long as the slice took', async () => {
    const { run, turn, slices } = someSlices();
    const long = run('long', 7);
    expect(turn().did).toEqual(['long3', 'long4']);
    const second = turn();
    expect(second.did).toEqual(['long5', 'long6']);
    expect(second.pausesMs).toContain(SLICE_MS);
    expect(turn().did).toEqual(['long7']);
    expect(await long).toEqual({ value: { name: 'long' }, spentMs: 7 });
    expect(slices.waiting).toBe(0);
    expect(turn().did).toEqual([]);
  });

  test('small work that comes later does not wait for long work; long works run one after the other', async () => {
    const { run, turn } = someSlices();
    const long = [run('a', 5), run('b', 4)];
    const small = run('s', 1);
    expect(turn().did).toEqual(['b1', 'b2']);
    expect(turn().did).toEqual(['s1', 'a3']);
    expect(turn().did).toEqual(['a4', 'a5']);
    expect(turn().did).toEqual(['b3', 'b4']);
    expect((await Promise.all([...long, small])).map(({ value }) => value?.name)).toEqual(['a', 'b', 's']);
  });

  test('work that is no longer needed is not completed', async () => {
    const { run, turn, done } = someSlices();
    let wanted = true;
    const long = run('long', 100, () => wanted);
    turn();
    wanted = false;
    turn();
    expect(await long).toEqual({ value: undefined, spentMs: 4 });
    expect(done).toHaveLength(4);
  });

  test('an error of a step is the error of its work, in the first slice and later, and the other work continues', async () => {
    const { slices, run, turn } = someSlices();
    function* failing(steps: number): Steps<object> {
      for (let step = 0; step < steps; step++) yield;
      throw new TypeError('a bug');
    }
    expect(() => slices.run(failing(0), always)).toThrow(TypeError);
    const long = run('long', 3);
    const late = slices.run(failing(0), always);
    await Promise.all([expect(late).rejects.toThrow(TypeError), turn()]);
    turn();
    expect((await long).value).toEqual({ name: 'long' });
  });
});
