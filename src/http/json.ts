/**
 * Reads a request body as JSON, more strictly than JSON.parse: RFC 8259 in UTF-8, no repeated member (section 4),
 * bounded structure.
 */

import { structureOf } from './body-structure.ts';

type JsonResult =
  /** `values` counts the values of the text, at most `BODY_BOUNDS.maxValues`. */
  | { readonly kind: 'json'; readonly value: unknown; readonly values: number }
  /** Not JSON that the API accepts. */
  | { readonly kind: 'error'; readonly message: string }
  /** More members or values than any schema accepts. The text was not parsed. */
  | { readonly kind: 'excessive'; readonly message: string };

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Parses the bytes of a body. Checks the structure first. */
export function parseJson(bytes: Uint8Array): JsonResult {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return { kind: 'error', message: 'The body is not valid UTF-8.' };
  }
  const structure = structureOf(text);
  if (structure.kind === 'within') return parsed(text, structure.values);
  return { kind: structure.kind === 'excessive' ? 'excessive' : 'error', message: structure.message };
}

function parsed(text: string, values: number): JsonResult {
  try {
    const value: unknown = JSON.parse(text);
    return { kind: 'json', value, values };
  } catch {
    return { kind: 'error', message: 'The body is not valid JSON.' };
  }
}
