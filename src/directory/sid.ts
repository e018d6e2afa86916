/** Security identifiers of Active Directory (MS-DTYP, 2.4.2.2). */

/** The SID of another object of the same domain: the last sub-authority replaced. Undefined for bytes that are no SID of a domain's object. */
export function siblingSid(sid: Buffer, relativeId: number): Buffer | undefined {
  const count = sid[1] ?? 0;
  const isDomainSid = sid[0] === 1 && count >= 2 && count <= 15 && sid.length === 8 + 4 * count;
  if (!isDomainSid || !Number.isInteger(relativeId) || relativeId < 0 || relativeId > 0xffff_ffff) return undefined;
  const sibling = Buffer.from(sid);
  sibling.writeUInt32LE(relativeId, sid.length - 4);
  return sibling;
}
