/** CheckRequests as Envoy sends them, made field by field, and files of them for the load generator. */

import { writeFileSync } from 'node:fs';

export interface Frame {
  readonly method: string;
  readonly path: string;
  /** Absent: no credential. */
  readonly authorization?: string;
  readonly body?: string;
  readonly peer?: string;
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 127) {
    bytes.push((rest % 128) | 128);
    rest = Math.floor(rest / 128);
  }
  bytes.push(rest);
  return Buffer.from(bytes);
}

function field(number: number, content: Buffer | string): Buffer {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
}

const message = (...fields: Buffer[]): Buffer => Buffer.concat(fields);

function header(key: string, value: string): Buffer {
  return field(1, message(field(1, key), field(3, value)));
}

/** One CheckRequest in the form that `encode_raw_headers` gives: headers as a header_map of raw values. */
export function encodeFrame(frame: Frame): Buffer {
  const body = Buffer.from(frame.body ?? '');
  const peer = frame.peer ?? '192.0.2.10';
  const headers = message(
    header(':authority', 'ai.example.com'),
    header(':method', frame.method),
    header(':path', frame.path),
    header(':scheme', 'https'),
    ...(frame.authorization === undefined ? [] : [header('authorization', frame.authorization)]),
    header('content-type', 'application/json'),
    header('content-length', String(body.length)),
    header('x-forwarded-for', peer),
    header('x-request-id', '6f1a2c34-9d1e-4b7e-8f51-6f1c7e1f2a90'),
    header('x-envoy-auth-partial-body', 'false'),
  );
  const socket = message(field(2, peer), varint(3 * 8), varint(51234));
  const http = message(
    field(1, '1234567890123456789'),
    field(2, frame.method),
    field(4, frame.path),
    field(5, 'ai.example.com'),
    field(6, 'https'),
    varint(9 * 8),
    varint(body.length),
    field(10, 'HTTP/2'),
    field(12, body),
    field(13, headers),
  );
  const attributes = message(
    field(1, field(1, field(1, socket))),
    field(2, field(1, field(1, message(field(2, '127.0.0.1'), varint(3 * 8), varint(10000))))),
    field(4, message(field(1, message(varint(8), varint(1_790_000_000))), field(2, http))),
  );
  return field(1, attributes);
}

/** A chat request of about 1 KB. */
export function chatBody(model: string): string {
  const words = 'The quick brown fox jumps over the lazy dog, and then \\"rests\\" by the river. ';
  return JSON.stringify({
    model,
    messages: [
      { role: 'system', content: 'You are a helpful assistant.' },
      { role: 'user', content: words.repeat(10).slice(0, 780) },
    ],
    temperature: 0.2,
    max_tokens: 256,
    stream: false,
    user: 'benchmark',
  });
}

/** Writes frames as the load generator reads them: each with its length before it. */
export function writeFrames(file: string, frames: Iterable<Buffer>): void {
  const parts: Buffer[] = [];
  for (const bytes of frames) {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    parts.push(length, bytes);
  }
  writeFileSync(file, Buffer.concat(parts));
}
