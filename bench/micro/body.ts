/**
 * How long the reader of bodies takes for 1 MiB of each kind of content, and how many times that of plain text.
 *
 * node bench/micro/body.ts [rounds]
 */

import { readJsonBody } from '../../src/decision/body.ts';
import { SHAPES } from '../body-shapes.ts';

const MIB = 1024 * 1024;
const ROUNDS = Number(process.argv[2] ?? 30);

const bodies = SHAPES.map(([name, of]) => ({ name, bytes: Buffer.from(of(MIB)), ms: [] as number[] }));
for (const { name, bytes } of bodies)
  if (readJsonBody(bytes).kind !== 'body') throw new Error(`the gate refuses ${name}`);
for (let round = 0; round < ROUNDS; round++) {
  for (const { bytes, ms } of bodies) {
    const began = performance.now();
    readJsonBody(bytes);
    ms.push(((performance.now() - began) * MIB) / bytes.length);
  }
}
const plain = Math.min(...(bodies[0]?.ms ?? []));
for (const { name, ms } of bodies) {
  const best = Math.min(...ms);
  const median = ms.toSorted((left, right) => left - right)[Math.floor(ms.length / 2)] ?? Number.NaN;
  console.log(
    `${name}: best ${best.toFixed(2)} ms, median ${median.toFixed(2)} ms; ${(best / plain).toFixed(1)} times plain text`,
  );
}
