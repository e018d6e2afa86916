import { describe, expect, test } from 'vitest';
import { type Source, sourceOf, trustProxies } from '../../src/http/client-address.ts';

const trusted = trustProxies(['10.0.0.0/8', '127.0.0.1', 'fd00::/8']);

function source(peer: string | undefined, ...forwarded: string[]): Source {
  return sourceOf(
    peer,
    forwarded.flatMap((value) => ['X-Forwarded-For', value]),
    trusted,
  );
}

describe("the client's address", () => {
  test.each<[string, string | undefined, string[], string | undefined]>([
    ['is the peer without X-Forwarded-For', '203.0.113.1', [], '203.0.113.1'],
    ['is missing where a peer that is not trusted forwards', '203.0.113.1', ['198.51.100.1'], undefined],
    ['is missing where such a peer forwards nothing', '203.0.113.1', [''], undefined],
    ['is missing behind more proxies than are looked at', '10.0.0.1', [Array(33).fill('10.0.0.2').join()], undefined],
    ['is the right-most entry behind a proxy', '10.0.0.1', ['198.51.100.1, 203.0.113.1'], '203.0.113.1'],
    ['skips proxies that are trusted', '10.0.0.1', ['198.51.100.1, 203.0.113.1, 10.9.9.9'], '203.0.113.1'],
    ['joins repeated headers in order', '10.0.0.1', ['198.51.100.1', '203.0.113.1', '10.9.9.9'], '203.0.113.1'],
    ['is the proxy itself when it forwards no address', '10.0.0.1', [], '10.0.0.1'],
    ['is the first of the proxies when there are only proxies', '10.0.0.1', ['10.0.0.3, 10.0.0.2'], '10.0.0.3'],
    ['is missing where the entry is no address', '10.0.0.1', ['203.0.113.1, unknown'], undefined],
    ['is missing where the entry is empty', '10.0.0.1', [''], undefined],
    ['is missing where an octet has a leading zero', '10.0.0.1', ['203.0.113.010'], undefined],
    ['of a mapped peer is its IPv4 address', '::ffff:127.0.0.1', ['::ffff:203.0.113.1'], '203.0.113.1'],
    ['has no zone', 'fd00::1%eth0', ['fe80::1%eth0'], 'fe80::1'],
    ['is missing where there is no peer', undefined, ['203.0.113.1'], undefined],
  ])('%s', (_name, peer, forwarded, expected) => {
    expect(source(peer, ...forwarded).address).toBe(expected);
  });

  test.each<[string, string | undefined, string[], string | undefined]>([
    ['the address', '203.0.113.1', [], '203.0.113.1'],
    ['the address that a trusted proxy names', '10.0.0.1', ['203.0.113.1'], '203.0.113.1'],
    ['the peer, where it is not trusted', '192.0.2.1', ['x, 203.0.113.1'], '192.0.2.1'],
    ['the peer, where it is not trusted and names no address', '::ffff:192.0.2.1', ['unknown'], '192.0.2.1'],
    ['the account only, where a trusted proxy names no address', '10.0.0.1', ['unknown'], undefined],
  ])('failed logins are counted under %s', (_name, peer, forwarded, expected) => {
    expect(source(peer, ...forwarded).throttledAs).toBe(expected);
  });

  test('a peer that forwards without being trusted is named, and no other', () => {
    expect(source('203.0.113.1', '198.51.100.1').untrustedForwarder).toBe('203.0.113.1');
    expect(source('203.0.113.1').untrustedForwarder).toBeUndefined();
    expect(source('10.0.0.1', '198.51.100.1').untrustedForwarder).toBeUndefined();
  });

  test('a proxy that is neither address nor block is refused at the start', () => {
    expect(() => trustProxies(['proxy.local'])).toThrow(/proxy\.local/);
  });
});
