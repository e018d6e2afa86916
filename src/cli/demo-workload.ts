/**
 * A workload of the demo without a secret: the demo's own issuer signs its token, and the token proves an API key of
 * the tenant `acme`.
 */

import type { Config } from '../config/config.ts';
import type { DemoIssuer } from '../demo/issuer.ts';
import { parseIssuerName } from '../domain/ids.ts';
import { createKeyAsSystem } from '../iam/api-keys/as-system.ts';
import type { AdminParts } from '../iam/caller/caller.ts';
import { findIssuer, issuersNamed, type StoredIssuer } from '../iam/issuers/queries.ts';
import { keyRefreshTurns, refreshIssuerKeys } from '../iam/issuers/refresh-keys.ts';
import { hasKey } from './demo-keys.ts';
import { ACME, ensureIssuer } from './demo-setup.ts';

const ISSUER = 'demo';
const AUDIENCE = 'postern';
/** The name of the key, and the subject of the token. */
export const WORKLOAD = 'nightly-report';
const TOKEN_HOURS = 24;
const KEY_DAYS = 300;

/**
 * Creates the issuer and the key unless they are present, and fetches the issuer's keys, so that the gate has them when
 * it starts.
 * @returns a token of the workload, valid for a day
 */
export async function seedWorkload(
  parts: AdminParts,
  provider: Pick<DemoIssuer, 'url' | 'sign'>,
  { allowedHosts, maxStalenessMs }: Config['issuers'],
): Promise<string> {
  const { id } = await presentIssuer(parts, provider.url, allowedHosts);
  const keys = { db: parts.db, fetch: { allowedHosts }, maxStalenessMs, turns: keyRefreshTurns() };
  const outcome = await refreshIssuerKeys(keys, { id, tenantId: ACME });
  // An operator may have pasted keys since, or pointed the issuer elsewhere. The demo starts in any case.
  if (outcome.kind === 'failed') process.stderr.write(`The keys of the demo's issuer: ${outcome.reason}\n`);
  if (!(await hasKey(parts, ACME, WORKLOAD))) {
    await createKeyAsSystem(parts, ACME, {
      name: WORKLOAD,
      description: 'Proved by a token of the issuer demo, without a secret',
      scopes: ['chat:write'],
      expires_in_days: KEY_DAYS,
      proof: { issuer: ISSUER, subject: WORKLOAD },
    });
  }
  return provider.sign({ sub: WORKLOAD, aud: AUDIENCE }, TOKEN_HOURS * 3600);
}

async function presentIssuer(parts: AdminParts, url: string, allowedHosts: readonly string[]): Promise<StoredIssuer> {
  const { knex } = parts.db;
  const find = async () => {
    const name = parseIssuerName(ISSUER);
    const named = name === undefined ? [] : await issuersNamed(knex, name);
    const own = named.find(({ tenant_id }) => tenant_id === ACME);
    return own && findIssuer(knex, ACME, own.id);
  };
  const present = await find();
  if (present?.issuer === url) return present;
  await ensureIssuer(parts, { name: ISSUER, issuer: url, audiences: [AUDIENCE] }, allowedHosts);
  const written = await find();
  if (written === undefined) throw new Error(`The issuer ${ISSUER} could not be created.`);
  return written;
}
