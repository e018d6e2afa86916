/**
 * /console: the files of `console/dist`. Each response with the page has a new nonce for the Content-Security-Policy
 * (CSP Level 3, section 2.3.1). The names of the other files contain the digest of their content, so these files never
 * change.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { Type } from 'typebox';
import { REPEATED } from '../../decision/model.ts';
import { Refusal, systemCode } from '../../domain/errors.ts';
import { type Answer, type Endpoint, publicEndpoint, type RequestInput } from '../endpoint.ts';

interface ConsoleParts {
  /** The directory of the built console. */
  readonly folder: string;
  /** Bytes from a secure source. */
  readonly random: (size: number) => Uint8Array;
}

/** The placeholder of the nonce in the built page. */
const NONCE_MARK = '%NONCE%';
const NONCE_BYTES = 16;

const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json; charset=utf-8',
  svg: 'image/svg+xml',
  woff2: 'font/woff2',
};

const HEADERS = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
};

/** Not part of the API's description. */
export function consoleEndpoints({ folder, random }: ConsoleParts): readonly Endpoint[] {
  const names = filesOf(folder);
  const page = pageOf(folder, names, random);
  return [
    consoleEndpoint('/console', 'getConsole', page),
    // The path of one of the console's screens.
    consoleEndpoint('/console/*', 'getConsoleScreen', page),
    // Clients would cache or run the page in place of the missing file.
    consoleEndpoint('/console/assets/*', 'getConsoleAsset', async () => {
      throw new Refusal(
        'not_found',
        'The file does not exist. The console was updated after this page was opened. Reload the page.',
      );
    }),
    ...names
      .filter((name) => name !== 'index.html')
      .map((name) => consoleEndpoint(`/console/${name}`, `getConsole:${name}`, fileOf(folder, name))),
  ];
}

type Handler = (input: RequestInput<unknown, unknown>) => Promise<Answer>;

function consoleEndpoint(path: string, operationId: string, handler: Handler): Endpoint {
  return publicEndpoint({
    method: 'GET',
    path,
    operationId,
    summary: 'A part of the console.',
    // Only the console reads the search parameters of a screen.
    query: Type.Object({}),
    answers: { 200: { description: 'The content.', content: { 'text/html': Type.Unknown() } } },
    handler,
  });
}

function pageOf(folder: string, names: readonly string[], random: ConsoleParts['random']): Handler {
  let page: string | undefined;
  return async () => {
    if (!names.includes('index.html')) {
      throw new Refusal(
        'not_found',
        'The console was not built. Run "npm run console:build", and start Postern again.',
      );
    }
    page ??= readFileSync(join(folder, 'index.html'), 'utf8');
    const nonce = Buffer.from(random(NONCE_BYTES)).toString('base64url');
    return {
      status: 200,
      headers: { ...HEADERS, 'content-security-policy': policyWith(nonce), 'cache-control': 'no-store' },
      file: { type: typeOf('index.html'), bytes: Buffer.from(page.replaceAll(NONCE_MARK, nonce)) },
    };
  };
}

/** No content from other origins, inline content only with the nonce, and no framing. */
function policyWith(nonce: string): string {
  return [
    "default-src 'none'",
    `script-src 'self' 'nonce-${nonce}'`,
    `style-src 'self' 'nonce-${nonce}'`,
    "font-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join('; ');
}

/** A file that is compressed at its first request. The result is kept. */
function fileOf(folder: string, name: string): Handler {
  const type = typeOf(name);
  const headers = {
    ...HEADERS,
    vary: 'accept-encoding',
    'cache-control': name.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache',
  };
  const kept = new Map<string, Promise<Uint8Array>>();
  return async (input) => {
    const accepted = input.header('accept-encoding');
    // Fonts are compressed already.
    const encoding =
      type === TYPES['woff2'] || accepted === undefined || accepted === REPEATED ? 'identity' : encodingFor(accepted);
    const bytes = kept.getOrInsertComputed(encoding, () => encoded(readFileSync(join(folder, name)), encoding));
    return {
      status: 200,
      headers: encoding === 'identity' ? headers : { ...headers, 'content-encoding': encoding },
      file: { type, bytes: await bytes },
    };
  };
}

type Encoding = 'identity' | 'br' | 'gzip';

/** @param accepted the header Accept-Encoding (RFC 9110, section 12.5.3) */
function encodingFor(accepted: string): Encoding {
  const codings = accepted
    .toLowerCase()
    .split(',', 16)
    .map((coding) => coding.trim());
  const takes = (name: string): boolean =>
    codings.some((coding) => coding === name || (coding.startsWith(`${name};`) && !/q=0(\.0*)?$/.test(coding)));
  if (takes('br')) return 'br';
  return takes('gzip') ? 'gzip' : 'identity';
}

/** Of 1.4 MB of scripts it makes 457 kB in 50 ms. The best quality makes 426 kB in 1,460 ms, and the first user would wait for that. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };

/** Returns the content as the server sends it in an encoding. */
export function encoded(bytes: Uint8Array, encoding: Encoding): Promise<Uint8Array> {
  switch (encoding) {
    case 'br':
      return promisify(brotliCompress)(bytes, BROTLI);
    case 'gzip':
      return promisify(gzip)(bytes);
    case 'identity':
      return Promise.resolve(bytes);
    default:
      return encoding satisfies never;
  }
}

/** Returns the names of all files in the directory, with slashes. Empty if the directory does not exist. */
function filesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) =>
        join(entry.parentPath, entry.name)
          .slice(folder.length + 1)
          .split(sep)
          .join('/'),
      );
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  }
}

function typeOf(name: string): string {
  return TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream';
}
