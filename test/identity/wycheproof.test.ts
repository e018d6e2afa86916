/** The vectors of Project Wycheproof for signed tokens and their keys (test/cases/wycheproof-jws.json). */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { validateKeySet } from '../../src/identity/issuer-keys.ts';
import { checkIssuerToken, readIssuerToken } from '../../src/identity/issuer-token.ts';
import { anIssuer } from '../credential-cache/support/world.ts';

interface Vector {
  readonly id: string;
  readonly jws: string;
  readonly valid: boolean;
}
const {
  groups,
}: { readonly groups: readonly { readonly keys: readonly unknown[]; readonly tests: readonly Vector[] }[] } =
  JSON.parse(readFileSync(new URL('../cases/wycheproof-jws.json', import.meta.url), 'utf8'));

const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];
const CLAIMS = { iss: 'https://cluster.example', aud: 'postern', iat: 1, exp: 2 };

/** Their payloads are no claims, so the claims come from here, and everything else from the vector. */
function vectorToken(jws: string) {
  const [head = '', , signature = ''] = jws.split('.');
  const payload = Buffer.from(JSON.stringify(CLAIMS)).toString('base64url');
  const read = readIssuerToken(`${head}.${payload}.${signature}`);
  return read && { ...read, token: jws };
}

async function outcome(keys: readonly unknown[], jws: string): Promise<string> {
  const set = validateKeySet({ keys }, 'oidc');
  if (set.kind === 'error') return 'no key';
  const token = vectorToken(jws);
  if (token === undefined) return 'malformed';
  const checked = await checkIssuerToken(token, anIssuer({ keys: set.keys, algorithms: ALGORITHMS }));
  return checked.kind === 'valid' ? 'valid' : checked.reason;
}

/** Keys whose `alg` is none of RFC 7518, or is not the algorithm of the token. They verify nothing here. */
const STRICTER = new Map([
  ['jws 346 Figure20', 'algorithm'],
  ['jws 347 Figure27', 'no key'],
  ['jws 350 Figure20', 'algorithm'],
  ['jws 351 Figure27', 'no key'],
]);
/** A key of a weak generator: the test of the library, and not of a verifier. */
const NOT_OURS: ReadonlySet<string> = new Set(['jwk 7 rejectsKeyWithRocaVulnerability']);

describe('of the vectors of Wycheproof', () => {
  it('an issuer accepts the valid ones, except those whose key names another algorithm', async () => {
    const valid = groups.flatMap(({ keys, tests }) =>
      tests.filter((test) => test.valid).map((test) => ({ keys, ...test })),
    );
    expect(valid.length).toBeGreaterThan(30);
    for (const { id, keys, jws } of valid) expect(await outcome(keys, jws), id).toBe(STRICTER.get(id) ?? 'valid');
  });

  it('an issuer rejects every invalid one', async () => {
    const invalid = groups.flatMap(({ keys, tests }) =>
      tests.filter(({ valid, id }) => !valid && !NOT_OURS.has(id)).map((test) => ({ keys, ...test })),
    );
    expect(invalid.length).toBeGreaterThan(330);
    for (const { id, keys, jws } of invalid) expect(await outcome(keys, jws), id).not.toBe('valid');
  });
});
