/**
 * Just enough of the protobuf wire format to read and write messages by field number, independent of the product's own
 * reader.
 */

export interface WireField {
  readonly number: number;
  /** Bytes of a length-delimited field; a varint is its number. */
  readonly value: Uint8Array | number;
}

export function readFields(bytes: Uint8Array): WireField[] {
  const fields: WireField[] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++];
      if (byte === undefined) throw new RangeError('cut varint');
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    const number = Math.floor(tag / 8);
    switch (tag % 8) {
      case 0:
        fields.push({ number, value: varint() });
        break;
      case 1:
        at += 8;
        break;
      case 2: {
        const length = varint();
        fields.push({ number, value: bytes.subarray(at, at + length) });
        at += length;
        break;
      }
      case 5:
        at += 4;
        break;
      default:
        throw new RangeError(`wire type ${tag % 8}`);
    }
  }
  return fields;
}

/** The messages in a repeated or single field. */
export function messages(bytes: Uint8Array, number: number): Uint8Array[] {
  return readFields(bytes).flatMap((field) =>
    field.number === number && typeof field.value !== 'number' ? [field.value] : [],
  );
}

/** A message at the end of a path of single fields; empty when it is absent. */
export function message(bytes: Uint8Array, ...path: readonly number[]): Uint8Array {
  return path.reduce<Uint8Array>((outer, number) => messages(outer, number)[0] ?? new Uint8Array(), bytes);
}

export function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

/** Writes fields in order: numbers as varints, strings and bytes with their length. */
export function writeFields(fields: readonly (readonly [number, string | number | Uint8Array])[]): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const [number, value] of fields) {
    if (typeof value === 'number') parts.push(varintBytes(number * 8), varintBytes(value));
    else {
      const bytes = typeof value === 'string' ? new TextEncoder().encode(value) : value;
      parts.push(varintBytes(number * 8 + 2), varintBytes(bytes.length), bytes);
    }
  }
  return Buffer.concat(parts);
}

function varintBytes(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 127) {
    bytes.push((rest % 128) | 128);
    rest = Math.floor(rest / 128);
  }
  return Uint8Array.from([...bytes, rest]);
}
