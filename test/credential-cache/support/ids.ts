/** Ids for tests: the same number gives the same id. */

import { createHash } from 'node:crypto';
import {
  type IssuerId,
  type IssuerName,
  type KeyDigest,
  type KeyId,
  makeId,
  type PolicyName,
  parseIssuerName,
  parseKeyDigest,
  parsePolicyName,
  parseRoleName,
  parseTenantId,
  type RoleName,
  type SessionId,
  type TenantId,
  type UserId,
} from '../../../src/domain/ids.ts';

function given<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the test made an id that is none');
  return value;
}

const bytes = (index: number): Uint8Array => createHash('sha256').update(String(index)).digest();

export const userId = (index: number): UserId => makeId('usr', index, bytes(index));
export const keyId = (index: number): KeyId => makeId('key', index, bytes(index));
export const sessionId = (index: number): SessionId => makeId('ses', index, bytes(index));
export const issuerId = (index: number): IssuerId => makeId('iss', index, bytes(index));
export const digest = (index: number): KeyDigest =>
  given(parseKeyDigest(createHash('sha256').update(`key ${index}`).digest('hex')));
export const tenantId = (text: string): TenantId => given(parseTenantId(text));
export const issuerName = (text: string): IssuerName => given(parseIssuerName(text));
export const roleName = (text: string): RoleName => given(parseRoleName(text));
export const policyName = (text: string): PolicyName => given(parsePolicyName(text));
