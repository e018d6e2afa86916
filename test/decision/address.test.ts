import { isIP } from 'node:net';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Address, inNetwork, parseAddress, parseNetwork } from '../../src/decision/address.ts';
import { runs } from '../support/properties.ts';

const MAPPED = 0xffffn << 32n;

/** An address as one number, and its family once mapped ones are IPv4. */
interface Plain {
  readonly family: 4 | 6;
  readonly value: bigint;
}

function plain(value: bigint): Plain {
  return value >> 32n === 0xffffn ? { family: 4, value: value & 0xffffffffn } : { family: 6, value };
}

function dotted(value: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 255n)).join('.');
}

function groups(value: bigint, width: number): string[] {
  return Array.from({ length: width }, (_, i) => ((value >> BigInt(16 * (width - 1 - i))) & 0xffffn).toString(16));
}

/** One of the ways to write an IPv6 address. */
function written(value: bigint, style: { dots: boolean; padded: boolean; gap: number; upper: boolean }): string {
  const pieces = style.dots ? [...groups(value >> 32n, 6), dotted(value & 0xffffffffn)] : groups(value, 8);
  const zeros = pieces.flatMap((piece, i) => (piece === '0' ? [i] : []));
  const at = zeros[style.gap % Math.max(zeros.length, 1)];
  const padded = pieces.map((piece) => (style.padded && !piece.includes('.') ? piece.padStart(4, '0') : piece));
  const text =
    at === undefined ? padded.join(':') : `${padded.slice(0, at).join(':')}::${padded.slice(at + 1).join(':')}`;
  return style.upper ? text.toUpperCase() : text;
}

const style = fc.record({ dots: fc.boolean(), padded: fc.boolean(), gap: fc.nat(8), upper: fc.boolean() });
const v4 = fc.bigInt(0n, 0xffffffffn);
const v6 = fc.oneof(
  fc.bigInt(0n, (1n << 128n) - 1n),
  v4.map((value) => MAPPED | value),
  fc.bigInt(0n, 0xffffn).map((low) => (0x20010db8n << 96n) | low),
);

function same(address: Address | undefined, wanted: Plain): void {
  const value =
    address?.family === 4
      ? BigInt(address.a)
      : address &&
        (BigInt(address.a) << 96n) | (BigInt(address.b) << 64n) | (BigInt(address.c) << 32n) | BigInt(address.d);
  expect({ family: address?.family, value }).toEqual(wanted);
}

describe('addresses', () => {
  test('every way to write an address gives its number', () => {
    fc.assert(
      fc.property(v4, v6, style, (four, six, way) => {
        same(parseAddress(dotted(four)), { family: 4, value: four });
        same(parseAddress(written(six, way)), plain(six));
      }),
      { numRuns: runs(1000) },
    );
  });

  test('what is an address and what is not agrees with the system', () => {
    const text = fc.string({
      unit: fc.constantFrom('0', '1', '25', '256', '01', 'f', 'ffff', '10000', ':', '::', '.', 'g', '/'),
      maxLength: 12,
    });
    fc.assert(
      fc.property(text, (one) => {
        expect(parseAddress(one) !== undefined).toBe(isIP(one) !== 0);
      }),
      { numRuns: runs(3000) },
    );
  });

  test.each([
    '',
    '1.2.3',
    '1.2.3.4.5',
    '1.2.3.',
    '.1.2.3',
    '01.2.3.4',
    '1.2.3.256',
    '1.2.3.4 ',
    ' 1.2.3.4',
    '0x1.2.3.4',
    ':::',
    '1::2::3',
    '1.2.3.4:80',
    '[::1]',
    '1.2.3.4%eth0',
    'fe80::1%',
    '::1/128',
  ])('%j is none', (text) => {
    expect(parseAddress(text)).toBeUndefined();
  });

  test('a zone id is cut from a client address and refused in a CIDR', () => {
    expect(parseAddress('fe80::1%eth0')).toEqual(parseAddress('fe80::1'));
    expect(parseNetwork('fe80::1%eth0')).toBeUndefined();
    expect(parseNetwork('fe80::%eth0/64')).toBeUndefined();
  });

  test('a mapped address is its IPv4 address, however it is written', () => {
    expect(parseAddress('::ffff:198.51.100.7')).toEqual(parseAddress('198.51.100.7'));
    expect(parseAddress('0:0:0:0:0:FFFF:c633:6407')).toEqual(parseAddress('198.51.100.7'));
    expect(parseAddress('::198.51.100.7')?.family).toBe(6);
  });
});

describe('networks', () => {
  test('membership agrees with shifting big numbers', () => {
    fc.assert(
      fc.property(v6, v6, fc.nat(128), style, style, (base, other, bits, wayOfBase, way) => {
        const shift = BigInt(128 - bits);
        const prefix = (base >> shift) << shift;
        // Half of the tested addresses are in the network.
        const asked = other % 2n === 0n ? prefix | (other & ((1n << shift) - 1n)) : other;
        const network = parseNetwork(`${written(prefix, wayOfBase)}/${bits}`);
        const mapped = prefix >> 32n === 0xffffn;
        if (mapped && bits < 96) {
          expect(network).toBeUndefined();
          return;
        }
        const address = parseAddress(written(asked, way));
        const inside = asked >> shift === prefix >> shift && plain(asked).family === (mapped ? 4 : 6);
        expect(network !== undefined && address !== undefined && inNetwork(address, network)).toBe(inside);
      }),
      { numRuns: runs(2000) },
    );
  });

  test('IPv4 membership agrees with shifting big numbers, and host bits are refused', () => {
    fc.assert(
      fc.property(v4, v4, fc.nat(32), (base, other, bits) => {
        const shift = BigInt(32 - bits);
        const prefix = (base >> shift) << shift;
        const asked = other % 2n === 0n ? prefix | (other & ((1n << shift) - 1n)) : other;
        const network = parseNetwork(`${dotted(prefix)}/${bits}`);
        const address = parseAddress(dotted(asked));
        expect(network !== undefined && address !== undefined && inNetwork(address, network)).toBe(
          asked >> shift === prefix >> shift,
        );
        expect(parseNetwork(`${dotted(base)}/${bits}`) === undefined).toBe(base !== prefix);
      }),
      { numRuns: runs(1000) },
    );
  });

  test.each([
    '10.0.0.1/8',
    '010.0.0.0/8',
    '10.0.0.0/08',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/-1',
    '10.0.0.0/8/8',
    '10.0.0.0/+8',
    '2001:db8::1/64',
    '::/129',
    '::ffff:10.0.0.0/90',
    '::ffff:0.0.0.0/90',
    '::ffff:0:0/0',
    '::ffff:10.0.0.1/104',
    '10/8',
  ])('%s is refused', (text) => {
    expect(parseNetwork(text)).toBeUndefined();
  });

  const contains = (network: string, address: string) => {
    const [net, asked] = [parseNetwork(network), parseAddress(address)];
    return net !== undefined && asked !== undefined && inNetwork(asked, net);
  };

  test('an IPv4 address never lies in an IPv6 network, ::/0 included', () => {
    expect(contains('::/0', '10.0.0.1')).toBe(false);
    expect(contains('::/0', '::ffff:10.0.0.1')).toBe(false);
    expect(contains('0.0.0.0/0', '::1')).toBe(false);
    expect(contains('::/0', '::1')).toBe(true);
  });

  test('a network in mapped form is its IPv4 network', () => {
    expect(contains('::ffff:10.0.0.0/104', '10.1.2.3')).toBe(true);
    expect(contains('::ffff:10.0.0.0/104', '::ffff:10.1.2.3')).toBe(true);
    expect(contains('::ffff:10.0.0.0/104', '11.1.2.3')).toBe(false);
    expect(contains('::ffff:0:0/96', '11.1.2.3')).toBe(true);
  });

  test('a network without a length is one address', () => {
    expect(contains('10.0.0.1', '10.0.0.1')).toBe(true);
    expect(contains('10.0.0.1', '10.0.0.2')).toBe(false);
    expect(contains('2001:db8::1', '2001:db8::1')).toBe(true);
  });
});
