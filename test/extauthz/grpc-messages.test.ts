import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { frame, MAX_MESSAGE_BYTES, MessageParts, type Read, readMessage } from '../../src/extauthz/grpc/messages.ts';
import { failure } from '../../src/extauthz/grpc/status.ts';
import { runs } from '../support/properties.ts';

function cut(bytes: Buffer, at: readonly number[]): Buffer[] {
  const ends = [...new Set(at.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [...ends, bytes.length]
    .map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end))
    .filter((chunk) => chunk.length > 0);
}

function readAll(chunks: readonly Buffer[]): Read {
  const parts = new MessageParts();
  let last: Read = { kind: 'more' };
  for (const chunk of chunks) {
    last = parts.add(chunk);
    if (last.kind !== 'more') break;
  }
  return last;
}

describe('a message in a stream of bytes', () => {
  test('is the one that was framed, for any chunks of its bytes and any bytes after it', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 400 }),
        fc.uint8Array({ maxLength: 20 }),
        fc.array(fc.nat(), { maxLength: 12 }),
        (message, after, at) => {
          const bytes = Buffer.concat([frame(Buffer.from(message)), after]);
          expect(readAll(cut(bytes, at))).toEqual({ kind: 'message', message: Buffer.from(message) });
          expect(readMessage(bytes)).toEqual({ kind: 'message', message: Buffer.from(message) });
        },
      ),
    );
  });

  test('of several hundred kilobytes is the one that was framed, in small and in large chunks', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 400_000 }),
        fc.array(fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 100_000 })), {
          minLength: 1,
          maxLength: 12,
        }),
        (length, sizes) => {
          const message = Buffer.from(Uint8Array.from({ length }, (_, i) => i * 31 + (i >> 8)));
          const bytes = Buffer.concat([frame(message), Buffer.from('behind it')]);
          const chunks: Buffer[] = [];
          for (let at = 0, i = 0; at < bytes.length; i += 1) {
            const end = at + (sizes[i % sizes.length] ?? 1) + (i > 200 ? 50_000 : 0);
            chunks.push(bytes.subarray(at, end));
            at = end;
          }
          const read = readAll(chunks);
          expect(read.kind === 'message' && read.message.equals(message)).toBe(true);
        },
      ),
      { numRuns: runs(50) },
    );
  });

  test('is not there while one byte is missing, and no cut makes it another', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 300 }),
        fc.nat(),
        fc.array(fc.nat(), { maxLength: 8 }),
        (message, length, at) => {
          const bytes = frame(Buffer.from(message));
          const short = bytes.subarray(0, length % bytes.length);
          expect(readMessage(short).kind).toBe('more');
          expect(readAll(cut(short, at)).kind).toBe('more');
        },
      ),
    );
  });

  test('is refused when compressed or too large, as soon as its prefix says so', () => {
    const prefix = (flag: number, length: number): Buffer => {
      const bytes = Buffer.alloc(5);
      bytes[0] = flag;
      bytes.writeUInt32BE(length, 1);
      return bytes;
    };
    for (const read of [readMessage, (bytes: Buffer) => readAll(cut(bytes, [1, 2, 3]))]) {
      expect(read(prefix(1, 3))).toMatchObject({ kind: 'failure', status: 12 });
      expect(read(prefix(0, MAX_MESSAGE_BYTES))).toMatchObject({ kind: 'more' });
      expect(read(prefix(0, MAX_MESSAGE_BYTES + 1))).toMatchObject({ kind: 'failure', status: 8 });
      expect(read(prefix(0, 0xffff_ffff))).toMatchObject({ kind: 'failure', status: 8 });
    }
  });
});

test('an unfinished message takes at most 1.5 times the memory of its received bytes, for chunks of any size', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 5000 }), { minLength: 1, maxLength: 60 }), (sizes) => {
      const parts = new MessageParts();
      const bytes = frame(Buffer.alloc(1_000_000));
      let length = 0;
      for (const size of sizes) {
        // As Node does it: a chunk is a view of all that was read from the socket.
        expect(parts.add(bytes.subarray(length, length + size)).kind).toBe('more');
        length += size;
        expect(parts.heldBytes).toBeGreaterThanOrEqual(length);
        expect(parts.heldBytes).toBeLessThanOrEqual(1 + length * 1.5);
      }
      parts.drop();
      expect([parts.heldBytes, parts.empty]).toEqual([0, true]);
    }),
  );
});

describe('a stream of messages', () => {
  test('is split into the framed messages, in order, for any cuts of its bytes', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 8 }),
        fc.array(fc.nat(), { maxLength: 20 }),
        (messages, at) => {
          const parts = new MessageParts();
          const seen: Buffer[] = [];
          const bytes = Buffer.concat(messages.map((message) => frame(Buffer.from(message))));
          for (const chunk of cut(bytes, at)) {
            const take = (message: Buffer): undefined => void seen.push(Buffer.from(message));
            expect(parts.split(chunk, take)).toBeUndefined();
          }
          expect(parts.empty).toBe(true);
          expect(seen).toEqual(messages.map((message) => Buffer.from(message)));
        },
      ),
    );
  });

  test('that ends within a message is detected', () => {
    const parts = new MessageParts();
    expect(parts.split(frame(Buffer.from('one')).subarray(0, 6), () => undefined)).toBeUndefined();
    expect(parts.empty).toBe(false);
  });

  test('yields the messages before a broken one, and then the reason of its end', () => {
    const seen: string[] = [];
    const bytes = Buffer.concat([frame(Buffer.from('one')), Buffer.from([1, 0, 0, 0, 0])]);
    const refused = new MessageParts().split(bytes, (message): undefined => void seen.push(String(message)));
    expect(seen).toEqual(['one']);
    expect(refused).toMatchObject({ kind: 'failure', status: 12 });
  });

  test('yields nothing after a rejected message', () => {
    const seen: string[] = [];
    const bytes = Buffer.concat(['one', 'two', 'three'].map((text) => frame(Buffer.from(text))));
    const refused = new MessageParts().split(bytes, (message) => {
      seen.push(String(message));
      return seen.length < 2 ? undefined : failure('invalidArgument', 'enough');
    });
    expect(seen).toEqual(['one', 'two']);
    expect(refused).toMatchObject({ message: 'enough' });
  });
});
