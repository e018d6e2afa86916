/** Headers that an answer sets: `envoy.config.core.v3.HeaderValueOption`. */

import { putByte, putBytes, putHole, putText, textField, type Writer, wrap } from './wire-write.ts';

/** OVERWRITE_IF_EXISTS_OR_ADD */
const OVERWRITE = 2;
/** OkHttpResponse.headers and DeniedHttpResponse.headers = 2, OkHttpResponse.response_headers_to_add = 6. */
const HEADER = 0x12;
const RESPONSE_HEADER = 0x32;

/** A header's name, encoded: HeaderValue.key = 1. */
export type HeaderName = Buffer & { readonly headerName: true };

export function headerName(name: string): HeaderName {
  return textField(0x0a, name) as HeaderName;
}

/**
 * Writes field 2 of an OkHttpResponse or DeniedHttpResponse: the header with this value only, in place of any earlier
 * one. It writes both forms of this option (`append` = false, and `append_action`), because Envoy's releases differ in
 * which one they read.
 */
export function putHeader(writer: Writer, name: HeaderName, value: string): void {
  const end = writer.at;
  putOverwrite(writer);
  const headerEnd = writer.at;
  putText(writer, value);
  wrapHeader(writer, name, headerEnd, end);
}

/** Writes field 6 of an OkHttpResponse: a header that is added to the upstream's answer. */
export function putResponseHeader(writer: Writer, name: HeaderName, value: string): void {
  const end = writer.at;
  putOverwrite(writer);
  const headerEnd = writer.at;
  putText(writer, value);
  wrapHeader(writer, name, headerEnd, end, RESPONSE_HEADER);
}

/** `putHeader` for a value that is filled in later. @returns its offset in the writer's bytes */
export function putHeaderHole(writer: Writer, name: HeaderName, length: number): number {
  return putHoleOf(writer, name, length, HEADER);
}

/** `putResponseHeader` for a value that is filled in later. @returns its offset in the writer's bytes */
export function putResponseHeaderHole(writer: Writer, name: HeaderName, length: number): number {
  return putHoleOf(writer, name, length, RESPONSE_HEADER);
}

function putHoleOf(writer: Writer, name: HeaderName, length: number, field: number): number {
  const end = writer.at;
  putOverwrite(writer);
  const headerEnd = writer.at;
  const hole = putHole(writer, length);
  wrapHeader(writer, name, headerEnd, end, field);
  return hole;
}

/** `putHeader` with several values joined by commas, at least one. */
export function putListHeader(writer: Writer, name: HeaderName, values: readonly string[]): void {
  const end = writer.at;
  putOverwrite(writer);
  const headerEnd = writer.at;
  for (let i = values.length - 1; i >= 0; i--) {
    putText(writer, values[i] ?? '');
    if (i > 0) putByte(writer, 0x2c);
  }
  wrapHeader(writer, name, headerEnd, end);
}

function wrapHeader(writer: Writer, name: HeaderName, headerEnd: number, end: number, field = HEADER): void {
  wrap(writer, 0x12, headerEnd);
  putBytes(writer, name);
  wrap(writer, 0x0a, headerEnd);
  wrap(writer, field, end);
}

/** append = 2: a BoolValue that is present and false; append_action = 3. */
function putOverwrite(writer: Writer): void {
  putByte(writer, OVERWRITE);
  putByte(writer, 0x18);
  putByte(writer, 0x00);
  putByte(writer, 0x12);
}

/** Visible ASCII except the percent sign itself. */
const PLAIN = /^[!-$&-~]*$/;
const ENCODED = /[^!-$&-~]/gu;

/**
 * Encodes text for a header's value: every character except visible ASCII, and `%`, is percent-encoded as UTF-8.
 * Decoding once returns the text. RFC 9110, section 5.5: only visible ASCII arrives unchanged everywhere.
 */
export function encodeHeaderText(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.toWellFormed().replace(ENCODED, (character) => {
    const hex = Buffer.from(character).toString('hex').toUpperCase();
    return hex.replace(/../g, '%$&');
  });
}
