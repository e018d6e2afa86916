/**
 * Writes the dynamic metadata of an answer (CheckResponse.dynamic_metadata = 4) for Envoy's access log: a Struct of
 * strings.
 */

import { makeMembers } from '../domain/objects.ts';
import { putByte, putBytes, putHole, putText, textField, type Writer, wrap } from './wire-write.ts';

/** A member's name, encoded: the key of a map entry. */
type MetadataMember = Buffer & { readonly memberName: true };

function memberName(name: string): MetadataMember {
  return textField(0x0a, name) as MetadataMember;
}

export const MEMBER = makeMembers(
  [
    ...(['charges', 'code', 'key', 'model', 'request_id', 'reservation', 'route', 'settles'] as const),
    ...(['subject', 'subject_type', 'tenant', 'user'] as const),
  ],
  memberName,
);

/** Writes one member of the Struct: Struct.fields = 1, a map entry of key = 1 and value = 2; Value.string_value = 3. */
export function putMember(writer: Writer, name: MetadataMember, text: string): void {
  const end = writer.at;
  putText(writer, text);
  wrapMember(writer, name, end);
}

/** `putMember` with two words, separated by a space. */
export function putWords(writer: Writer, name: MetadataMember, first: string, second: string): void {
  const end = writer.at;
  putText(writer, second);
  putByte(writer, 0x20);
  putText(writer, first);
  wrapMember(writer, name, end);
}

/** `putMember` for a text that is filled in later. @returns its offset in the writer's bytes */
export function putMemberHole(writer: Writer, name: MetadataMember, length: number): number {
  const end = writer.at;
  const hole = putHole(writer, length);
  wrapMember(writer, name, end);
  return hole;
}

/** `putMember` for a long text of ASCII. */
export function putAsciiMember(writer: Writer, name: MetadataMember, text: string): void {
  const end = writer.at;
  writer.at -= text.length;
  writer.bytes.write(text, writer.at, 'latin1');
  wrapMember(writer, name, end);
}

function wrapMember(writer: Writer, name: MetadataMember, end: number): void {
  wrap(writer, 0x1a, end);
  wrap(writer, 0x12, end);
  putBytes(writer, name);
  wrap(writer, 0x0a, end);
}

/** Writes the Struct's tag before the members that were written since `end`. */
export function wrapMetadata(writer: Writer, end: number): void {
  wrap(writer, 0x22, end);
}
