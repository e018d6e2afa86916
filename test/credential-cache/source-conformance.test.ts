import { type LoadedKind, liveSourceConformance, SESSION_END_MS, type SourceWorld } from './source-conformance.ts';
import { roleName } from './support/ids.ts';
import { ModelStore } from './support/model-store.ts';
import { postgresWorld } from './support/postgres-world.ts';
import {
  aKey,
  anIssuer,
  aPolicy,
  aSession,
  aTenant,
  aUser,
  DEVELOPER,
  HOME,
  ISSUER,
  initialState,
  OWNED,
  SESSION,
} from './support/world.ts';

async function modelWorld(): Promise<SourceWorld> {
  const store = new ModelStore(initialState());
  const writes: { readonly [Kind in LoadedKind]: (version: number) => void } = {
    key: (version) => store.putKey(aKey({ scopes: [`chat:v${version}`] })),
    user: (version) => store.putUser(aUser({ roles: [roleName(`role-${version}`)] })),
    session: (version) => store.putSession(aSession({ expiresAtMs: SESSION_END_MS + version })),
    tenant: (version) =>
      store.putTenant(aTenant({ roles: [{ name: roleName(`role-${version}`), permissions: [], constraints: {} }] })),
    global: (version) => store.putGlobals([aPolicy(`policy-${version}`)]),
    issuer: (version) => store.putIssuer(anIssuer({ audiences: [`v${version}`] })),
    link: (version) =>
      store.putLink(ISSUER, 'pod', {
        proofs: [{ digest: OWNED, subject: 'pod', claims: [], expiresAtMs: SESSION_END_MS + version }],
        user: undefined,
      }),
  };
  const write = async (kind: LoadedKind, version: number): Promise<void> => writes[kind](version);
  for (const kind of ['key', 'user', 'session', 'tenant', 'global', 'issuer', 'link'] as const) await write(kind, 0);
  return {
    source: store.source,
    digest: OWNED,
    user: DEVELOPER,
    session: SESSION,
    tenant: HOME,
    issuer: ISSUER,
    iss: anIssuer().issuer,
    subject: 'pod',
    write,
    changes: async (after) => store.changes(after),
    close: async () => {},
  };
}

liveSourceConformance('the model', modelWorld);
liveSourceConformance('PostgreSQL', postgresWorld);
