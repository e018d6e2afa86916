import { describe, expect, test } from 'vitest';
import { clientAddress, trustProxies } from '../../src/http/client-address.ts';

const trusted = trustProxies(['10.0.0.0/8', '127.0.0.1', 'fd00::/8']);

function address(peer: string | undefined, ...forwarded: string[]): string | undefined {
  return clientAddress(
    peer,
    forwarded.flatMap((value) => ['X-Forwarded-For', value]),
    trusted,
  );
}

describe("the client's address", () => {
  test.each<[string, string | undefined, string[], string | undefined]>([
    ['is the peer, whatever it says of itself', '203.0.113.1', ['198.51.100.1'], '203.0.113.1'],
    ['is the right-most entry behind a proxy', '10.0.0.1', ['198.51.100.1, 203.0.113.1'], '203.0.113.1'],
    ['skips proxies that are trusted', '10.0.0.1', ['198.51.100.1, 203.0.113.1, 10.9.9.9'], '203.0.113.1'],
    ['joins repeated headers in order', '10.0.0.1', ['198.51.100.1', '203.0.113.1', '10.9.9.9'], '203.0.113.1'],
    ['is the proxy itself when it forwards for nobody', '10.0.0.1', [], '10.0.0.1'],
    ['is the first of the proxies when there are only proxies', '10.0.0.1', ['10.0.0.3, 10.0.0.2'], '10.0.0.3'],
    ['is missing where the entry is no address', '10.0.0.1', ['203.0.113.1, unknown'], undefined],
    ['is missing where the entry is empty', '10.0.0.1', [''], undefined],
    ['is missing where an octet has a leading zero', '10.0.0.1', ['203.0.113.010'], undefined],
    ['of a mapped peer is its IPv4 address', '::ffff:127.0.0.1', ['::ffff:203.0.113.1'], '203.0.113.1'],
    ['has no zone', 'fd00::1%eth0', ['fe80::1%eth0'], 'fe80::1'],
    ['is missing where there is no peer', undefined, ['203.0.113.1'], undefined],
  ])('%s', (_name, peer, forwarded, expected) => {
    expect(address(peer, ...forwarded)).toBe(expected);
  });

  test('a proxy that is neither address nor block is refused at the start', () => {
    expect(() => trustProxies(['proxy.local'])).toThrow(/proxy\.local/);
  });
});
