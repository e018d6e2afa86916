/**
 * The same message written differently: everything that Protocol Buffers lets a writer do without changing the meaning.
 */

import type { Random } from '../../../bench/fuzz/random.ts';
import { readFields, type WireField } from '../../support/protobuf.ts';

interface Shape {
  /** Embedded messages of which there is one, so that two parts of it merge. */
  readonly single?: Readonly<Record<number, Shape>>;
  readonly repeated?: Readonly<Record<number, Shape>>;
}

const HEADER: Shape = {};
const SOCKET_ADDRESS: Shape = {};
const ADDRESS: Shape = { single: { 1: SOCKET_ADDRESS } };
const HTTP: Shape = { single: { 13: { repeated: { 1: HEADER } } }, repeated: { 3: HEADER } };
const CHECK_REQUEST: Shape = {
  single: { 1: { single: { 1: { single: { 1: ADDRESS } }, 4: { single: { 2: HTTP } } } } },
};

/** An int64 of -1, the only negative number in these messages, whose 64 bits no number here can hold. */
const MINUS_ONE = Buffer.from([...new Array<number>(9).fill(0xff), 0x01]);

/** Adds unknown fields of every wire type, pads varints, splits embedded messages into parts. */
export function rewrite(bytes: Uint8Array, random: Random): Buffer {
  return rewriteAs(bytes, CHECK_REQUEST, random);
}

function rewriteAs(bytes: Uint8Array, shape: Shape, random: Random): Buffer {
  const out: Buffer[] = [];
  for (const field of readFields(bytes)) {
    if (random.chance(0.2)) out.push(unknown(random, 0));
    out.push(...rewriteField(field, shape, random));
  }
  if (random.chance(0.2)) out.push(unknown(random, 0));
  return Buffer.concat(out);
}

function rewriteField({ number, value }: WireField, shape: Shape, random: Random): Buffer[] {
  if (typeof value === 'number')
    return [varint(number * 8, random), value >= 2 ** 63 ? MINUS_ONE : varint(value, random)];
  const single = shape.single?.[number];
  const inner = single ?? shape.repeated?.[number];
  if (inner === undefined) return [delimited(number, Buffer.from(value), random)];
  const whole = rewriteAs(value, inner, random);
  if (single === undefined || !random.chance(0.4)) return [delimited(number, whole, random)];
  const fields = readFields(value);
  const cut = random.below(fields.length + 1);
  return [fields.slice(0, cut), fields.slice(cut)].map((part) =>
    delimited(number, Buffer.concat(part.flatMap((field) => rewriteField(field, inner, random))), random),
  );
}

function delimited(number: number, value: Buffer, random: Random): Buffer {
  return Buffer.concat([varint(number * 8 + 2, random), varint(value.length, random), value]);
}

/** A field that no definition knows. */
function unknown(random: Random, depth: number): Buffer {
  const number = 100 + random.below(2 ** 20);
  switch (random.below(depth > 3 ? 4 : 5)) {
    case 0:
      return Buffer.concat([varint(number * 8, random), varint(random.below(2 ** 31), random)]);
    case 1:
      return Buffer.concat([varint(number * 8 + 1, random), Buffer.alloc(8, random.below(256))]);
    case 2:
      return delimited(number, Buffer.alloc(random.below(200), random.below(256)), random);
    case 3:
      return Buffer.concat([varint(number * 8 + 5, random), Buffer.alloc(4, random.below(256))]);
    default: {
      const inside = Array.from({ length: random.below(3) }, () => unknown(random, depth + 1));
      return Buffer.concat([varint(number * 8 + 3, random), ...inside, varint(number * 8 + 4, random)]);
    }
  }
}

/** Sometimes longer than it needs to be. */
function varint(value: number, random: Random): Buffer {
  const bytes: number[] = [];
  let rest = value;
  do {
    bytes.push(rest % 128);
    rest = Math.floor(rest / 128);
  } while (rest > 0);
  if (random.chance(0.1)) while (bytes.length < 10 && random.chance(0.5)) bytes.push(0);
  return Buffer.from(bytes.map((byte, i) => (i < bytes.length - 1 ? byte | 0x80 : byte)));
}
