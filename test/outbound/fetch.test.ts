/** Requests to servers that a tenant chose, against real servers on loopback. */

import { createServer, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type FetchOutcome, type FetchRules, fetchBounded } from '../../src/outbound/fetch.ts';
import { type ResolveHost, resolveHost } from '../../src/outbound/resolve.ts';
import { makeAuthority } from '../support/certificates.ts';
import { sendJson, startIssuer, type TestIssuer } from '../support/issuer.ts';

/** A name that no resolver knows: only the resolver of a test gives it an address. */
const NAME = 'issuer.invalid';
let server: TestIssuer;
let plain: TestIssuer;

beforeAll(async () => {
  server = await startIssuer({ tls: true, hostname: NAME });
  plain = await startIssuer();
});
afterEach(() => {
  server.answer = undefined;
  server.requests.length = 0;
  plain.requests.length = 0;
});
afterAll(async () => {
  await Promise.all([server.close(), plain.close()]);
});

const loopback: ResolveHost = async () => ['127.0.0.1'];

function fetchServer(rules: Partial<FetchRules> = {}, url = server.jwksUri): Promise<FetchOutcome> {
  return fetchBounded(url, { allowedHosts: [server.host], ca: server.ca, resolve: loopback, ...rules });
}

const reasonOf = (outcome: FetchOutcome): string => (outcome.kind === 'failed' ? outcome.reason : 'it succeeded');

test('a response has its status, headers and bytes', async () => {
  const outcome = await fetchServer();
  expect(outcome).toMatchObject({ kind: 'ok', status: 200, headers: { 'content-type': 'application/json' } });
  expect(outcome.kind === 'ok' && JSON.parse(outcome.body.toString())).toEqual(server.jwks());
});

test('a request has the method, headers and body of its caller', async () => {
  const seen: unknown[] = [];
  server.answer = (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      seen.push(request.method, request.url, request.headers['content-type'], Buffer.concat(chunks).toString());
      sendJson(response, { error: 'invalid_grant' }, 400);
    });
    return true;
  };
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const outcome = await fetchServer({ method: 'POST', headers, body: 'code=a%26b' }, `${server.url}/token?x=1`);
  expect(outcome).toMatchObject({ kind: 'ok', status: 400 });
  expect(seen).toEqual(['POST', '/token?x=1', 'application/x-www-form-urlencoded', 'code=a%26b']);
});

describe('the address of a host', () => {
  test.each([
    ['127.0.0.1'],
    ['10.0.0.7'],
    ['169.254.169.254'],
    ['::1'],
    ['::ffff:127.0.0.1'],
    ['::ffff:7f00:1'],
    ['64:ff9b::7f00:1'],
    ['fd00::1'],
    ['0.0.0.0'],
    // A public address beside it does not help.
    ['8.8.8.8', '127.0.0.1'],
    ['2606:4700:4700::1111', 'fe80::1'],
  ])('a name with the address %s reaches no server', async (...addresses) => {
    const outcome = await fetchServer({ allowedHosts: [], resolve: async () => addresses });
    expect(reasonOf(outcome)).toMatch(/private or reserved/);
    expect(server.requests).toEqual([]);
  });

  test.each([
    'https://127.0.0.1',
    'https://127.1',
    'https://0x7f000001',
    'https://2130706433',
    'https://[::1]',
    'https://[::ffff:127.0.0.1]',
    'https://[::]',
    'https://0.0.0.0',
    'https://10.0.0.7',
    'https://169.254.169.254',
    'https://[fd00:ec2::254]',
  ])('%s in the URL reaches no server', async (url) => {
    const port = server.host.split(':').at(-1);
    const rules: FetchRules = { allowedHosts: [], ca: server.ca };
    expect(reasonOf(await fetchBounded(`${url}:${port}/`, rules))).toMatch(/private or reserved/);
    expect(server.requests).toEqual([]);
  });

  test('a host that the operator names may have any address, on the named port or on each', async () => {
    for (const allowed of [server.host, NAME]) {
      expect(await fetchServer({ allowedHosts: ['other.example', allowed] })).toMatchObject({ kind: 'ok' });
    }
    for (const allowed of [`${NAME}:1`, `${NAME}.`, `x.${NAME}`, 'invalid', '127.0.0.1']) {
      expect(reasonOf(await fetchServer({ allowedHosts: [allowed] }))).toMatch(/private or reserved/);
    }
  });

  test('the connection goes to the checked address, also if the name has another one at the next resolution', async () => {
    const answers = [['127.0.0.1'], ['192.0.2.1'], ['192.0.2.1']];
    let asked = 0;
    const resolve: ResolveHost = async () => answers[asked++] ?? [];
    expect(await fetchServer({ resolve })).toMatchObject({ kind: 'ok' });
    expect(asked).toBe(1);
  });

  test('an address that does not answer leaves the others to try', async () => {
    const resolve: ResolveHost = async () => ['::1', '127.0.0.1'];
    expect(await fetchServer({ resolve })).toMatchObject({ kind: 'ok' });
  });

  test('a name without an address has a reason of its own', async () => {
    expect(reasonOf(await fetchServer({ resolve: async () => [] }))).toMatch(/could not be resolved/);
    const failing: ResolveHost = () => Promise.reject(new Error('queryA ENOTFOUND 10.96.0.10'));
    expect(reasonOf(await fetchServer({ resolve: failing }))).toBe('The name of the host could not be resolved.');
  });

  test('the own resolver knows literal addresses, and the names of the system for hosts that the operator names', async () => {
    const { signal } = new AbortController();
    expect(await resolveHost('192.0.2.7', false, signal)).toEqual(['192.0.2.7']);
    expect(await resolveHost('2001:db8::7', false, signal)).toEqual(['2001:db8::7']);
    expect(await resolveHost('localhost', true, signal)).toContain('127.0.0.1');
  });
});

describe('the URL', () => {
  test.each([
    ['file:///etc/passwd', /not an https URL/],
    ['ftp://issuer.example/keys', /not an https URL/],
    ['data:application/json,{}', /not an https URL/],
    ['issuer.example/keys', /not an https URL/],
    ['', /not an https URL/],
    ['https://user:secret@issuer.example/keys', /username or password/],
    ['http://issuer.example/keys', /must begin with https/],
  ])('%s is refused', async (url, reason) => {
    expect(reasonOf(await fetchServer({}, url))).toMatch(reason);
  });

  test('http needs a host that the operator names and that is loopback', async () => {
    const get = (rules: Partial<FetchRules>) => fetchBounded(plain.jwksUri, { allowedHosts: [], ...rules });
    expect(await get({ allowedHosts: [plain.host] })).toMatchObject({ kind: 'ok' });
    expect(reasonOf(await get({}))).toMatch(/must begin with https/);
    const elsewhere: ResolveHost = async () => ['10.0.0.7'];
    expect(reasonOf(await get({ allowedHosts: [plain.host], resolve: elsewhere }))).toMatch(/must begin with https/);
  });
});

describe('the response', () => {
  test.each([301, 302, 303, 307, 308])('a redirect with the status %i is not followed', async (status) => {
    server.answer = ({ url }, response) => {
      if (url === '/elsewhere') return false;
      response.writeHead(status, { location: `${server.url}/elsewhere` }).end();
      return true;
    };
    expect(reasonOf(await fetchServer())).toBe(`The server redirects (status ${status}).`);
    expect(server.requests).toEqual(['/jwks']);
  });

  test('a body of exactly the bound is accepted, a byte more is not', async () => {
    let size = 0;
    server.answer = (_request, response) => {
      response.end('x'.repeat(size));
      return true;
    };
    for (size of [1000, 512 * 1024]) {
      const outcome = await fetchServer(size === 1000 ? { maxBytes: 1000 } : {});
      expect(outcome.kind === 'ok' && outcome.body.length).toBe(size);
    }
    for (size of [1001, 512 * 1024 + 1]) {
      const outcome = await fetchServer(size === 1001 ? { maxBytes: 1000 } : {});
      expect(reasonOf(outcome)).toMatch(/more than \d+ bytes/);
    }
  });

  test('an endless body ends at the bound, and its connection is closed', async () => {
    const closed = Promise.withResolvers<void>();
    server.answer = (_request, response) => {
      const more = (): void => {
        while (response.write('x'.repeat(65_536)));
      };
      response.on('drain', more).on('close', closed.resolve);
      more();
      return true;
    };
    expect(reasonOf(await fetchServer())).toMatch(/more than 524288 bytes/);
    await closed.promise;
  });

  test.each([
    ['no headers', false],
    ['a body that stops', true],
  ])('a server that sends %s is given up after the bound', async (_what, sendsHeaders) => {
    server.answer = (_request, response) => {
      if (sendsHeaders) response.writeHead(200).write('{');
      return true;
    };
    expect(reasonOf(await fetchServer({ timeoutMs: 300 }))).toBe('The server did not answer completely in time.');
  });

  test('a body that ends with its connection is not complete if the bound ends the connection', async () => {
    server.answer = ({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n{}');
      return true;
    };
    expect(reasonOf(await fetchServer({ timeoutMs: 300 }))).toBe('The server did not answer completely in time.');
    expect(await fetchServer({ timeoutMs: 300, cutsBody: true })).toMatchObject({ body: Buffer.from('{}') });
    server.answer = ({ socket }) => {
      socket.end('HTTP/1.1 200 OK\r\n\r\n{}');
      return true;
    };
    expect(await fetchServer()).toMatchObject({ kind: 'ok', body: Buffer.from('{}') });
  });

  test('a server that switches to another protocol ends the request', async () => {
    server.answer = ({ socket }) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n');
      return true;
    };
    expect(reasonOf(await fetchServer({ timeoutMs: 300 }))).toBe('The server closed the connection.');
  });

  test('a server that accepts and says nothing, and a resolver that does not answer, are given up after the bound', async () => {
    const sockets = new Set<Socket>();
    const silent = createServer((socket) => sockets.add(socket));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const address = silent.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const rules = { allowedHosts: [NAME], timeoutMs: 300 };
    const outcomes = await Promise.all([
      fetchServer(rules, `https://${NAME}:${port}/`),
      fetchServer({ ...rules, resolve: () => new Promise(() => undefined) }),
    ]);
    expect(outcomes.map(reasonOf)).toEqual(Array(2).fill('The server did not answer completely in time.'));
    for (const socket of sockets) socket.destroy();
    silent.close();
  });

  test('the caller can end a request', async () => {
    const stop = new AbortController();
    server.answer = () => {
      stop.abort();
      return true;
    };
    expect(reasonOf(await fetchServer({ signal: stop.signal }))).toMatch(/^The request failed/);
  });

  test('interim responses are skipped', async () => {
    server.answer = ({ socket }) => {
      const hints = 'HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n'.repeat(16);
      socket.write(`${hints}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}`);
      return true;
    };
    expect(await fetchServer()).toMatchObject({ kind: 'ok', body: Buffer.from('{}') });
  });

  test('a body of the largest size may come in chunks of one byte', async () => {
    const chunks = `${'1\r\nx\r\n'.repeat(512 * 1024)}0\r\n\r\n`;
    server.answer = ({ socket }) => {
      socket.write(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunks}`);
      return true;
    };
    expect(await fetchServer({ timeoutMs: 60_000 })).toMatchObject({
      kind: 'ok',
      body: Buffer.from('x'.repeat(512 * 1024)),
    });
  });

  test.each([
    ['interim responses', '', 'HTTP/1.1 103 Early Hints\r\n\r\n'],
    ['empty lines', '', '\r\n'],
    ['extensions of chunks', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n', `1;${'e'.repeat(9000)}\r\nx\r\n`],
  ])('endless %s end the request by their bytes, and not by its time', async (_, start, repeated) => {
    const piece = repeated.repeat(Math.ceil(65_536 / repeated.length));
    server.answer = ({ socket }) => {
      const send = (): void => {
        while (!socket.destroyed && socket.write(piece));
      };
      socket.on('drain', send).write(start);
      send();
      return true;
    };
    expect(reasonOf(await fetchServer())).toBe('The server sends too much beside its response.');
  });

  test('headers of more than 16 KiB end the request', async () => {
    server.answer = (_request, response) => {
      response.writeHead(200, { 'x-long': 'x'.repeat(20_000) }).end();
      return true;
    };
    expect(reasonOf(await fetchServer())).toMatch(/^The request failed/);
  });

  test('a lost connection is a failure with a reason', async () => {
    server.answer = (request) => {
      request.socket.destroy();
      return true;
    };
    expect(reasonOf(await fetchServer())).toBe('The server closed the connection.');
    server.answer = (request, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('{}');
      response.write('', () => request.socket.destroy());
      return true;
    };
    expect(reasonOf(await fetchServer())).toBe('The server closed the connection.');
    const refused = await fetchServer({ allowedHosts: [NAME] }, `https://${NAME}:1/`);
    expect(reasonOf(refused)).toBe('The host refused the connection.');
  });
});

describe('the certificate', () => {
  test('it must be of the given authority', async () => {
    expect(reasonOf(await fetchServer({ ca: undefined }))).toMatch(/certificate is not accepted/);
    expect(reasonOf(await fetchServer({ ca: makeAuthority().certPem }))).toMatch(/certificate is not accepted/);
    expect(reasonOf(await fetchServer({ ca: 'no certificate' }))).not.toBe('it succeeded');
  });

  test('it must be for the name of the URL', async () => {
    const other = server.jwksUri.replace(NAME, 'other.invalid');
    const outcome = await fetchServer({ allowedHosts: ['other.invalid'] }, other);
    expect(reasonOf(outcome)).toBe("The server's certificate is not accepted (ERR_TLS_CERT_ALTNAME_INVALID).");
    expect(server.requests).toEqual([]);
  });
});
