/** One request to the stand-in upstream, with a body of bounded size. */

import type { IncomingMessage } from 'node:http';

const KEPT_BYTES = 4 * 1024 * 1024;
const MAX_BYTES = 64 * 1024 * 1024;

export interface DemoRequest {
  readonly method: string;
  /** Without the query and a trailing slash. */
  readonly path: string;
  /** Names in lower case; a repeated header's values joined by a comma and a space. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The JSON object in the body; empty when there is none. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** Reads the body to its end. Returns undefined if it is too long. */
export async function readRequest(message: IncomingMessage): Promise<DemoRequest | undefined> {
  const kept: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of message) {
    if (!Buffer.isBuffer(chunk)) continue;
    bytes += chunk.length;
    if (bytes > MAX_BYTES) return undefined;
    // The server reads a long upload to its end and discards it.
    if (bytes <= KEPT_BYTES) kept.push(chunk);
  }
  const path = (message.url ?? '/').split('?', 1)[0] ?? '/';
  return {
    method: message.method ?? 'GET',
    path: path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path,
    headers: headersOf(message.rawHeaders),
    body: jsonObject(Buffer.concat(kept)),
  };
}

function headersOf(raw: readonly string[]): Record<string, string> {
  const headers = new Map<string, string>();
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] ?? '').toLowerCase();
    const before = headers.get(name);
    headers.set(name, before === undefined ? (raw[i + 1] ?? '') : `${before}, ${raw[i + 1]}`);
  }
  return Object.fromEntries(headers);
}

function jsonObject(bytes: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

export function wholeNumber(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined;
}
