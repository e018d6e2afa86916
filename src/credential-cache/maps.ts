/** The maps of the credential cache: what each loads and keeps, and its limits. */

import type { BuiltinRoles } from '../decision/builtin-roles.ts';
import { compilePoliciesInSteps, compileTenantInSteps } from '../decision/compile.ts';
import { inOneStep } from '../domain/steps.ts';
import { Admissions } from './admissions.ts';
import { Cooldown } from './cooldown.ts';
import { IssuerTokens } from './issuer-tokens.ts';
import { knownIssuers, partsOfLink, weightOfIssuer, weightOfLink } from './issuer-values.ts';
import { KnownCredentials } from './known-credentials.ts';
import type { Limiters } from './limits.ts';
import type { Maps } from './lookup.ts';
import type {
  CacheLoader,
  FeedClock,
  IssuerKeyRefresh,
  IssuerTokenReader,
  IssuerUserAdmission,
  TokenVerifier,
} from './ports.ts';
import { MAX_TOMBSTONES, ReadThroughCache } from './read-through-cache.ts';
import { weightOfPolicies, weightOfTenant } from './rules-weight.ts';
import { AT_ONCE, onEventLoop, Slices, type StepRunner } from './slices.ts';
import {
  type CachedTenant,
  toCachedKey,
  toCachedSession,
  toCachedUser,
  weightOfKey,
  weightOfSession,
  weightOfUser,
} from './values.ts';
import { VerifiedTokens } from './verified-tokens.ts';

/** Memory for the compiled rules of all cached tenants: 244 MiB for the default of 200,000 credentials. */
const RULES_BYTES_PER_CREDENTIAL = 1280;
/** Enough for several tenants with the largest possible rules. */
const MIN_RULES_BYTES = 64 * 1024 * 1024;

export interface MapsParts {
  readonly source: CacheLoader;
  readonly verifier: TokenVerifier;
  readonly builtinRoles: BuiltinRoles;
  readonly issuers: IssuersParts;
  readonly feed: FeedClock;
  /** The capacity for keys, and likewise for users and for sessions. The rules of tenants have 1,280 bytes for each. */
  readonly maxCredentials: number;
  /** `performance.now()`: the clock of `feed.polledAtMs`. */
  readonly monotonicMs: () => number;
  /** Tombstones of each kind. A smaller number costs more loads and never a wrong decision. */
  readonly maxTombstones?: number;
  /** Compiles rules between checks. Default: in slices on the event loop. */
  readonly runner?: StepRunner;
}

export interface IssuersParts {
  readonly reader: IssuerTokenReader;
  readonly admission: IssuerUserAdmission;
  readonly refresh: IssuerKeyRefresh;
  /** The age at which fetched keys of an issuer are no longer used, in milliseconds. */
  readonly maxKeyAgeMs: number;
}

/**
 * The global policies have no cooldown: the checks of all tenants wait for them, and only platform administrators
 * change them.
 */
export function makeMaps(parts: MapsParts, limiters: Limiters): Maps {
  const { rules, known, unseen, known_token, unseen_token } = limiters;
  const { source, verifier, maxCredentials, monotonicMs, maxTombstones = MAX_TOMBSTONES } = parts;
  const maxRulesBytes = Math.max(MIN_RULES_BYTES, maxCredentials * RULES_BYTES_PER_CREDENTIAL);
  const runner = parts.runner ?? new Slices({ monotonicMs: () => performance.now(), later: onEventLoop });
  const common = { monotonicMs, maxTombstones };
  const credentials = {
    ...common,
    maxWeight: maxCredentials,
    runner: AT_ONCE,
    limiter: known,
  };
  const issuers: Maps['issuers'] = new ReadThroughCache({
    ...credentials,
    unseen: { known: knownIssuers(), limiter: unseen },
    maxWeight: maxRulesBytes,
    load: (value, isKnown) => source.issuer(value, isKnown),
    compile: (record) => inOneStep(() => ({ value: record, weight: weightOfIssuer(record) })),
  });
  const { reader, admission, refresh, maxKeyAgeMs } = parts.issuers;
  return {
    builtinRoles: parts.builtinRoles,
    verifier,
    reader,
    maxKeyAgeMs,
    issuers,
    issuerTokens: new IssuerTokens({
      capacity: maxCredentials,
      limiter: limiters.known_issuer_token,
      unseenLimiter: limiters.unseen_issuer_token,
      refresh,
      monotonicMs,
      holds: (issuer, atMs) => issuers.holds(issuer, atMs),
    }),
    admissions: new Admissions({ admission, feed: parts.feed, limiter: limiters.admission, monotonicMs }),
    keys: new ReadThroughCache({
      ...credentials,
      unseen: { known: new KnownCredentials(maxCredentials), limiter: unseen },
      load: (digest, isKnown) => source.key(digest, isKnown),
      compile: (record) => inOneStep(() => ({ value: toCachedKey(record), weight: weightOfKey(record) })),
    }),
    users: new ReadThroughCache({
      ...credentials,
      load: (id) => source.user(id),
      compile: (record, id) => inOneStep(() => ({ value: toCachedUser(record, id), weight: weightOfUser(record) })),
    }),
    sessions: new ReadThroughCache({
      ...credentials,
      load: (id) => source.session(id),
      groupOf: ({ issuerId }) => issuerId,
      compile: (record, id) =>
        inOneStep(() => ({ value: toCachedSession(record, id), weight: weightOfSession(record) })),
    }),
    ...rulesMaps(source, { ...common, runner, limiter: rules, maxWeight: maxRulesBytes }),
    links: new ReadThroughCache({
      ...credentials,
      load: (key) => source.link(...partsOfLink(key)),
      compile: (record) => inOneStep(() => ({ value: record, weight: weightOfLink(record) })),
    }),
    tokens: new VerifiedTokens({
      capacity: maxCredentials,
      verifier,
      limiter: known_token,
      unseenLimiter: unseen_token,
      monotonicMs,
    }),
  };
}

function rulesMaps(
  source: CacheLoader,
  common: Pick<
    ConstructorParameters<typeof ReadThroughCache>[0],
    'monotonicMs' | 'maxTombstones' | 'runner' | 'limiter' | 'maxWeight'
  >,
): Pick<Maps, 'tenants' | 'globals'> {
  return {
    tenants: new ReadThroughCache({
      ...common,
      cooldown: new Cooldown(),
      load: (id) => source.tenant(id),
      *compile(reading) {
        const record = yield* reading;
        const value: CachedTenant = { view: yield* compileTenantInSteps(record), home: undefined };
        return { value, weight: yield* weightOfTenant(record) };
      },
    }),
    globals: new ReadThroughCache({
      ...common,
      load: () => source.globalPolicies(),
      *compile(reading) {
        const records = yield* reading;
        return { value: yield* compilePoliciesInSteps(records), weight: 1 + (yield* weightOfPolicies(records)) };
      },
    }),
  };
}
