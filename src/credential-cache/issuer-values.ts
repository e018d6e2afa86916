/** Cached issuers, and what their subjects prove. */

import { hash } from 'node:crypto';
import { Fault } from '../domain/errors.ts';
import { type IssuerId, parseId } from '../domain/ids.ts';
import type { ClaimRule, IssuerRecord, LinkRecord, ProofRecord } from '../domain/records.ts';

import { KnownCredentials } from './known-credentials.ts';

/** The id of an issuer, a space and a subject, as in the change feed. */
export type LinkKey = `${IssuerId} ${string}`;

export function linkKey(issuerId: IssuerId, subject: string): LinkKey {
  return `${issuerId} ${subject}`;
}

/** @throws Fault for a text that `linkKey` does not return */
export function partsOfLink(key: LinkKey): [IssuerId, string] {
  const space = key.indexOf(' ');
  const issuerId = parseId('iss', key.slice(0, space));
  if (issuerId === undefined) throw new Fault('the key of a link has no id of an issuer');
  return [issuerId, key.slice(space + 1)];
}

/**
 * The order in which issuers are tried for a token that names several. The keys of issuers are public, so a tenant can
 * give an issuer of its own the keys of another tenant's, and its tokens then verify with both. They stay with the one
 * that had its value first.
 */
export function byValueSince(one: IssuerRecord, other: IssuerRecord): number {
  return one.valueSinceMs - other.valueSinceMs || (one.id < other.id ? -1 : 1);
}

/** Issuers that are remembered as known: more than an installation has. */
const MAX_KNOWN_ISSUERS = 10_000;

/** Remembers which values of `iss` have an issuer. Any client can invent others. */
export function knownIssuers(): Pick<KnownCredentials, 'has' | 'add'> {
  const known = new KnownCredentials(MAX_KNOWN_ISSUERS);
  const digestOf = (value: string): string => hash('sha256', value, 'hex');
  return { has: (value) => known.has(digestOf(value)), add: (value) => known.add(digestOf(value)) };
}

/** Bytes of one object or text, without its characters. */
const OBJECT_BYTES = 64;
/** Bytes of a key, with its imported form. */
const KEY_BYTES = 4096;

export function weightOfIssuer({ keys, users, requiredClaims, earlier, globProofs }: IssuerRecord): number {
  const rules = [...requiredClaims, ...(users?.roles ?? []), ...(earlier?.requiredClaims ?? [])];
  const allKeys = keys.length + (earlier?.keys.length ?? 0);
  return 1024 + allKeys * KEY_BYTES + bytesOfRules(rules) + bytesOfProofs(globProofs);
}

/** Bytes of proofs in one unit of the cache's capacity. Nearly every subject has less. */
const UNIT_BYTES = 4096;

/** Returns the units of capacity that a link takes, at least 1. */
export function weightOfLink({ proofs }: LinkRecord): number {
  return 1 + Math.floor(bytesOfProofs(proofs) / UNIT_BYTES);
}

function bytesOfProofs(proofs: readonly ProofRecord[]): number {
  return proofs.reduce((sum, { subject, claims }) => sum + 4 * OBJECT_BYTES + subject.length + bytesOfRules(claims), 0);
}

/** A rule is kept as it is stored, and compiled. */
function bytesOfRules(rules: readonly ClaimRule[]): number {
  const texts = rules.flatMap((rule) => [rule.claim, ...rule.in]);
  return texts.reduce((sum, text) => sum + 2 * (OBJECT_BYTES + text.length), 0);
}
