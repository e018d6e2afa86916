import { BlockList, isIPv4 } from 'node:net';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isLoopbackAddress } from '../../src/decision/address.ts';
import { isPublicAddress } from '../../src/outbound/addresses.ts';
import { enough, runs } from '../support/properties.ts';

/** The blocks that the IANA registries of special-purpose addresses list as not globally reachable, and multicast. */
const RESERVED_V4 = [
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24',
  '192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4',
  '255.255.255.255/32 168.63.129.16/32',
].flatMap((line) => line.split(' '));
const RESERVED_V6 = [
  '::/128 ::1/128 ::/96 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001:db8::/32 2002::/16 3fff::/20 5f00::/16',
  'fc00::/7 fe80::/10 fec0::/10 ff00::/8',
].flatMap((line) => line.split(' '));

function blockList(blocks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const block of blocks) {
    const [address = '', bits] = block.split('/');
    list.addSubnet(address, Number(bits), isIPv4(address) ? 'ipv4' : 'ipv6');
  }
  return list;
}

const v4List = blockList(RESERVED_V4);
const v6List = blockList(RESERVED_V6);
const unicast = blockList(['2000::/3']);

const dotted = (value: number): string => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.');
const groupsOf = (value: bigint): string =>
  [112n, 96n, 80n, 64n, 48n, 32n, 16n, 0n].map((shift) => ((value >> shift) & 0xffffn).toString(16)).join(':');

/** The obvious reading: the embedded IPv4 address decides where there is one, otherwise the lists. */
function isPublicNaively(value: bigint): boolean {
  const low = Number(value & 0xffffffffn);
  const isV4Inside = value >> 32n === 0xffffn || value >> 32n === 0x64ff9bn << 64n;
  if (isV4Inside) return !v4List.check(dotted(low), 'ipv4');
  const text = groupsOf(value);
  return unicast.check(text, 'ipv6') && !v6List.check(text, 'ipv6');
}

/** Addresses at the ends of each block, inside and outside. */
function nearBlock(blocks: readonly string[], width: 32 | 128) {
  return fc
    .tuple(fc.constantFrom(...blocks), fc.constantFrom(-1n, 0n, 1n), fc.boolean())
    .map(([block, step, isEnd]) => {
      const [address = '', bits] = block.split('/');
      const first = width === 32 ? BigInt(numberOf(address)) : bigOf(address);
      const size = 1n << BigInt(width - Number(bits));
      const top = 1n << BigInt(width);
      return ((isEnd ? first + size - 1n : first) + step + top) % top;
    });
}

const numberOf = (text: string): number => text.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0);

function bigOf(text: string): bigint {
  const [head = '', tail = ''] = text.split('::');
  const list = (side: string): string[] => (side === '' ? [] : side.split(':'));
  const groups = [...list(head), ...new Array(8 - list(head).length - list(tail).length).fill('0'), ...list(tail)];
  return groups.reduce((sum, group) => (sum << 16n) | BigInt(`0x${group}`), 0n);
}

const v4 = fc.oneof(fc.bigInt(0n, 0xffffffffn), nearBlock(RESERVED_V4, 32));
const v6 = fc.oneof(
  fc.bigInt(0n, (1n << 128n) - 1n),
  fc.bigInt(0n, (1n << 125n) - 1n).map((rest) => (1n << 125n) | rest),
  nearBlock(RESERVED_V6, 128),
  v4.map((value) => (0xffffn << 32n) | value),
  v4.map((value) => (0x64ff9bn << 96n) | value),
);

test('an address is public exactly if the registries say so, in any way to write it', () => {
  let publicOnes = 0;
  fc.assert(
    fc.property(v4, v6, fc.boolean(), (four, six, isUpper) => {
      const value = Number(four);
      const isPublic = !v4List.check(dotted(value), 'ipv4');
      expect(isPublicAddress(dotted(value))).toBe(isPublic);
      expect(isPublicAddress(`::ffff:${dotted(value)}`)).toBe(isPublic);
      const text = groupsOf(six);
      expect(isPublicAddress(isUpper ? text.toUpperCase() : text)).toBe(isPublicNaively(six));
      if (isPublic || isPublicNaively(six)) publicOnes++;
    }),
    { numRuns: runs(5000) },
  );
  expect(publicOnes).toBeGreaterThanOrEqual(enough(500));
});

test.each([
  '127.0.0.1',
  '127.1.2.3',
  '10.1.2.3',
  '172.31.255.255',
  '192.168.0.1',
  '169.254.169.254',
  '100.100.100.200',
  '168.63.129.16',
  '0.0.0.0',
  '255.255.255.255',
  '::1',
  '::',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '::127.0.0.1',
  '64:ff9b::127.0.0.1',
  '64:ff9b::a9fe:a9fe',
  '64:ff9b:1::808:808',
  '2002:7f00:1::',
  '2001:0:4136:e378:8000:63bf:3fff:fdd2',
  'fd00:ec2::254',
  'fe80::1',
  'fe80::1%eth0',
  '2606:4700:4700::1111%eth0',
  'ff02::1',
  '127.1',
  '0x7f.0.0.1',
  '2130706433',
  'localhost',
  '',
])('%s is not public', (text) => {
  expect(isPublicAddress(text)).toBe(false);
});

test.each([
  '8.8.8.8',
  '172.32.0.1',
  '192.0.1.1',
  '198.17.255.255',
  '2606:4700:4700::1111',
  '::ffff:8.8.8.8',
  '64:ff9b::8.8.8.8',
])('%s is public', (text) => {
  expect(isPublicAddress(text)).toBe(true);
});

test('loopback is 127.0.0.0/8 and ::1, also mapped', () => {
  const texts = ['127.0.0.1', '127.255.0.1', '::1', '::ffff:127.0.0.1', '128.0.0.1', '::2', '10.0.0.1', 'localhost'];
  expect(texts.map(isLoopbackAddress)).toEqual([true, true, true, true, false, false, false, false]);
});
