/** Adds encoded fields to a message inside an answer that is already written. */

/**
 * Returns the answer with the fields before those of its `ok_response` or of its metadata.
 * @param answer a CheckResponse in which that message begins, with its tag, at `messageAt`
 */
export function withFields(answer: Buffer, messageAt: number, fields: Uint8Array): Buffer {
  const { length, at } = readLength(answer, messageAt + 1);
  const whole = length + fields.length;
  const start = messageAt + 1 + varintSize(whole);
  const extended = Buffer.allocUnsafe(start + fields.length + answer.length - at);
  answer.copy(extended, 0, 0, messageAt + 1);
  writeVarint(extended, whole, messageAt + 1);
  extended.set(fields, start);
  answer.copy(extended, start + fields.length, at);
  return extended;
}

/**
 * Returns a copy of the answer with the field after those of its `ok_response`, so that no other byte moves. Returns
 * undefined if the length of the response would take more bytes than before.
 * @param answer a CheckResponse that ends with its `ok_response`, which begins, with its tag, at `okAt`
 */
export function withLastField(answer: Buffer, okAt: number, field: Uint8Array): Buffer | undefined {
  const { length, at } = readLength(answer, okAt + 1);
  const whole = length + field.length;
  if (okAt + 1 + varintSize(whole) !== at) return undefined;
  const extended = Buffer.allocUnsafe(answer.length + field.length);
  extended.set(answer);
  extended.set(field, answer.length);
  writeVarint(extended, whole, okAt + 1);
  return extended;
}

/** Returns the offset of the first field of the `ok_response`. */
export function fieldsAt(answer: Buffer, okAt: number): number {
  return readLength(answer, okAt + 1).at;
}

function varintSize(value: number): number {
  let size = 1;
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) size++;
  return size;
}

function writeVarint(bytes: Buffer, value: number, start: number): void {
  let at = start;
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) bytes[at++] = (rest & 0x7f) | 0x80;
  bytes[at] = rest;
}

/** Reads a varint that this server wrote, and returns it with the offset of its end. */
function readLength(bytes: Buffer, start: number): { readonly length: number; readonly at: number } {
  let length = 0;
  let at = start;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++] ?? 0;
    length |= (byte & 0x7f) << shift;
    if (byte < 0x80) return { length, at };
  }
}
