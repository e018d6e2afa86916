/**
 * The reader's naive twin: the same input out of a message that the complete library decoded, in the plainest words.
 */

import { isIP } from 'node:net';
import { type HeaderValue, REPEATED } from '../../../src/decision/model.ts';
import type { CheckMessage } from '../../../src/extauthz/check-request.ts';
import type { CheckRequestMessage } from './definition.ts';

export interface Source {
  readonly address?: { readonly address?: string; readonly socket_address?: { readonly address?: string } | null };
}

export function twin(message: CheckRequestMessage, trustedHops: number): CheckMessage {
  const http = message.attributes?.request?.http;
  const mode = message.attributes?.context_extensions?.['postern.mode'];
  if (mode !== undefined && mode !== 'shadow') return { kind: 'malformed', shadow: false };
  const shadow = mode === 'shadow';
  if (http == null) return { kind: 'malformed', shadow };
  const all: [string, string][] = [
    ...Object.entries(http.headers ?? {}),
    ...(http.header_map?.headers ?? []).map(({ key, value, raw_value }): [string, string] => [
      key ?? '',
      raw_value !== undefined && raw_value.length > 0 ? Buffer.from(raw_value).toString() : (value ?? ''),
    ]),
  ].map(([name, value]) => [name.replace(/[A-Z]/g, (letter) => letter.toLowerCase()), value]);
  const values = (name: string): string[] => all.filter(([key]) => key === name).map(([, value]) => value);
  const single = (name: string): HeaderValue => (values(name).length > 1 ? REPEATED : values(name)[0]);
  const body = Buffer.from(http.raw_body !== undefined && http.raw_body.length > 0 ? http.raw_body : (http.body ?? ''));
  const bodyAsText = (http.raw_body ?? []).length === 0 && body.length > 0;
  const announced = single('content-length');
  const distinct = [...new Set<HeaderValue>([single('x-api-key'), single('api-key')])].filter(
    (value) => value !== undefined,
  );
  const requestId = single('x-request-id');
  const peer = (message.attributes?.source as Source | undefined)?.address?.socket_address?.address;
  return {
    kind: 'request',
    input: {
      method: http.method ?? '',
      path: http.path ?? '',
      authorization: single('authorization'),
      apiKey: distinct.length > 1 ? REPEATED : distinct[0],
      tenant: single('x-tenant-id'),
      upgrade: single('upgrade'),
      contentType: single('content-type'),
      contentEncoding: single('content-encoding'),
      body,
      bodyPartial:
        values('x-envoy-auth-partial-body').includes('true') ||
        (http.size ?? 0) > body.length ||
        ((http.size ?? 0) < 0 && body.length > 0) ||
        (announced !== undefined &&
          (announced === REPEATED || !/^[0-9]{1,15}$/.test(announced) || Number(announced) > body.length)),
      bodyAsText,
      bodyMissing: isMissing(message, body.length, values),
      clientAddress: trustedHops > 0 ? hop(values('x-forwarded-for'), trustedHops) : peer || undefined,
    },
    clientRequestId: requestId === REPEATED ? undefined : requestId,
    aliases: {
      names: all.map(([name]) => name).filter(isAlias),
      areAll: message.attributes?.context_extensions?.['postern.headers'] === 'sent',
    },
    shadow,
  };
}

function isMissing(message: CheckRequestMessage, length: number, values: (name: string) => readonly string[]): boolean {
  const [announced, ...others] = values('content-length');
  const marked = values('x-envoy-auth-partial-body').length > 0;
  if (length > 0 || marked || values('upgrade').length > 0 || others.length > 0) return false;
  if (announced !== undefined) return /^[0-9]{1,15}$/.test(announced) && Number(announced) > 0;
  const size = Number(message.attributes?.request?.http?.size ?? 0);
  return message.attributes?.context_extensions?.['postern.body'] === 'not_sent' || size > 0;
}

/** The characters of a header's name that are no letter and no digit. */
const SEPARATORS = /[!#$%&'*+\-.^_`|~]+/;
const GUARDED = [
  'x-tenant-id',
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  'x-original-url',
  'x-rewrite-url',
  'authorization',
  'x-api-key',
  'api-key',
  'accept-encoding',
];

/** The name as the most lenient server folds it, in lower case. */
export function folded(name: string): string {
  return name
    .split(SEPARATORS)
    .filter((part) => part !== '')
    .join('-');
}

function isAlias(name: string): boolean {
  const parts = name.split(SEPARATORS);
  if (parts[0] === '') parts.shift();
  if (parts[0] === 'x' && parts[1] === 'postern' && parts.length > 2) return true;
  return GUARDED.includes(folded(name)) && !GUARDED.includes(name);
}

function hop(values: readonly string[], trustedHops: number): string | undefined {
  if (values.length === 0) return undefined;
  const entry = values
    .join(',')
    .split(',')
    .reverse()
    [trustedHops]?.replace(/^[ \t]+|[ \t]+$/g, '');
  const bare =
    entry?.startsWith('[') && entry.endsWith(']') && isIP(entry.slice(1, -1)) === 6 ? entry.slice(1, -1) : entry;
  return bare !== undefined && isIP(bare) !== 0 ? bare : undefined;
}
