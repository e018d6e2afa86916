/** Reads `envoy.data.ai.v3.TokenUsage`, in which Envoy's `ai_protocol_manager` publishes the usage that it counted. */

import { type Cursor, lastField, readLength, readTag, readVarint, readWrapped, skipField } from '../wire-read.ts';
import { isCount, type UsageCount } from './usage.ts';

/** The bytes of a string, which are not validated. */
interface Text {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
}

interface NativeUsage {
  readonly counts: Partial<Record<UsageCount, number>>;
  readonly model: Text | undefined;
}

/** Field tags: number << 3 | wire type. */
const VALUE_TAG = 0x12;
const MODEL_TAG = 0x12;
const INPUT_DETAILS_TAG = (6 << 3) | 2;
const STATUS_TAG = 9 << 3;
const COMPLETE = 1;

/**
 * The counts of the message and of its details on the input, by field tag. The input includes the tokens of a cache
 * for every API, as OpenAI's `prompt_tokens` does. The total is the provider's own.
 */
const COUNTS: ReadonlyMap<number, UsageCount> = new Map([
  [0x1a, 'prompt_tokens'],
  [0x22, 'completion_tokens'],
  [0x42, 'total_tokens'],
]);
const INPUT_DETAILS: ReadonlyMap<number, UsageCount> = new Map([
  [0x0a, 'cached_tokens'],
  [0x12, 'cache_creation_input_tokens'],
]);

/**
 * Any: value = 2. Throws `MALFORMED`.
 * @returns undefined unless Envoy read all of the reported usage
 */
export function readNativeUsage(cursor: Cursor, end: number): NativeUsage | undefined {
  const value = lastField(cursor, end, VALUE_TAG);
  return value && readTokenUsage({ bytes: cursor.bytes, at: value.start }, value.end);
}

/** TokenUsage: model = 2, input_token_details = 6, extraction_status = 9, and counts. */
function readTokenUsage(cursor: Cursor, end: number): NativeUsage | undefined {
  const counts: NativeUsage['counts'] = {};
  let model: Text | undefined;
  let status = 0;
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === MODEL_TAG) {
      const modelEnd = readLength(cursor, end);
      model = { bytes: cursor.bytes, start: cursor.at, end: modelEnd };
      cursor.at = modelEnd;
    } else if (tag === INPUT_DETAILS_TAG) {
      readCounts(cursor, readLength(cursor, end), INPUT_DETAILS, counts);
    } else if (tag === STATUS_TAG) {
      status = readVarint(cursor, end);
    } else {
      readCount(cursor, tag, end, COUNTS, counts);
    }
  }
  return status === COMPLETE ? { counts, model } : undefined;
}

function readCounts(
  cursor: Cursor,
  end: number,
  names: ReadonlyMap<number, UsageCount>,
  counts: NativeUsage['counts'],
): void {
  while (cursor.at < end) readCount(cursor, readTag(cursor, end), end, names, counts);
}

/** Reads one field: a count, or any other field, which it skips. */
function readCount(
  cursor: Cursor,
  tag: number,
  end: number,
  names: ReadonlyMap<number, UsageCount>,
  counts: NativeUsage['counts'],
): void {
  const name = names.get(tag);
  if (name === undefined) {
    skipField(cursor, tag, end);
    return;
  }
  const value = readWrapped(cursor, readLength(cursor, end));
  if (isCount(value)) counts[name] = value;
}
