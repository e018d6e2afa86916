/**
 * A store in memory whose every past position can still be seen, and whose loads answer when the test says so: the
 * moment of a load's snapshot and the moment of its answer are two, as in the real one.
 */

import type { CacheLoader, Change, ChangeListener, Loaded } from '../../../src/credential-cache/ports.ts';
import type { IssuerId, KeyDigest, SessionId, TenantId, UserId } from '../../../src/domain/ids.ts';
import type {
  ChangeKind,
  IssuerRecord,
  KeyRecord,
  LinkRecord,
  PolicyRecord,
  SessionRecord,
  TenantRecord,
  UserRecord,
} from '../../../src/domain/records.ts';
import type { Steps } from '../../../src/domain/steps.ts';

export interface State {
  readonly keys: ReadonlyMap<string, KeyRecord>;
  readonly users: ReadonlyMap<string, UserRecord>;
  readonly sessions: ReadonlyMap<string, SessionRecord>;
  readonly tenants: ReadonlyMap<string, TenantRecord>;
  readonly globals: readonly PolicyRecord[];
  /** By the value of `iss`. */
  readonly issuers: ReadonlyMap<string, IssuerRecord>;
  /** By the id of the issuer, a space and the subject. */
  readonly links: ReadonlyMap<string, LinkRecord>;
}

export const EMPTY: State = {
  keys: new Map(),
  users: new Map(),
  sessions: new Map(),
  tenants: new Map(),
  globals: [],
  issuers: new Map(),
  links: new Map(),
};

/** A load under way. */
export interface PendingLoad {
  readonly kind: ChangeKind;
  readonly key: string;
  /** Takes the snapshot: the newest, or the one at a position. Without it, the answer takes the newest at its time. */
  see(position?: number): void;
  answer(): void;
  fail(error: unknown): void;
}

export class ModelStore {
  /** One state for each position of the feed. */
  #states: State[];
  #changes: Change[] = [];
  #pending: PendingLoad[] = [];
  /** Counted by `<kind> <key>`. */
  readonly loads = new Map<string, number>();
  /** When set, loads answer at once. */
  answersAtOnce: boolean;

  constructor(initial: State = EMPTY, answersAtOnce = true) {
    this.#states = [initial];
    this.answersAtOnce = answersAtOnce;
  }

  get position(): number {
    return this.#states.length - 1;
  }

  get pending(): readonly PendingLoad[] {
    return this.#pending;
  }

  at(position: number): State {
    const state = this.#states[position];
    if (state === undefined) throw new Error(`the feed never was at ${position}`);
    return state;
  }

  /** One transaction with one change. */
  commit(kind: ChangeKind, key: string, state: Partial<State>): void {
    this.#states.push({ ...this.at(this.position), ...state });
    this.#changes.push({ seq: this.position, kind, key });
  }

  putKey(key: KeyRecord): void {
    this.commit('key', key.digest, { keys: new Map(this.at(this.position).keys).set(key.digest, key) });
  }

  putUser(user: UserRecord): void {
    this.commit('user', user.id, { users: new Map(this.at(this.position).users).set(user.id, user) });
  }

  putSession(session: SessionRecord): void {
    this.commit('session', session.id, { sessions: new Map(this.at(this.position).sessions).set(session.id, session) });
  }

  putTenant(tenant: TenantRecord): void {
    this.commit('tenant', tenant.id, { tenants: new Map(this.at(this.position).tenants).set(tenant.id, tenant) });
  }

  deleteUser(id: UserId): void {
    const users = new Map(this.at(this.position).users);
    users.delete(id);
    this.commit('user', id, { users });
  }

  putIssuer(issuer: IssuerRecord): void {
    this.commit('issuer', issuer.issuer, {
      issuers: new Map(this.at(this.position).issuers).set(issuer.issuer, issuer),
    });
  }

  putLink(issuerId: IssuerId, subject: string, link: LinkRecord): void {
    const key = `${issuerId} ${subject}`;
    this.commit('link', key, { links: new Map(this.at(this.position).links).set(key, link) });
  }

  putGlobals(globals: readonly PolicyRecord[]): void {
    this.commit('global', '', { globals });
  }

  /** Returns the changes after one position of the feed, up to and including another. */
  changes(after: number, through = this.position): readonly Change[] {
    return this.#changes.slice(after, through);
  }

  deliver(listener: ChangeListener, after: number, through = this.position): void {
    listener.apply(this.changes(after, through));
  }

  /** A standby with the changes up to `position` takes over. */
  failOver(position: number): void {
    this.#states = this.#states.slice(0, position + 1);
    this.#changes = this.#changes.slice(0, position);
  }

  loadsOf(kind: ChangeKind, key = ''): number {
    return this.loads.get(`${kind} ${key}`) ?? 0;
  }

  readonly source: CacheLoader = {
    key: (digest: KeyDigest) => this.#load('key', digest, (state) => state.keys.get(digest)),
    user: (id: UserId) => this.#load('user', id, (state) => state.users.get(id)),
    session: (id: SessionId) => this.#load('session', id, (state) => state.sessions.get(id)),
    tenant: (id: TenantId) =>
      this.#load('tenant', id, (state) => {
        const tenant = state.tenants.get(id);
        return tenant && inSteps(tenant);
      }),
    globalPolicies: () => this.#load('global', '', (state) => inSteps(state.globals)),
    issuer: (value) => this.#load('issuer', value, (state) => state.issuers.get(value)),
    link: (issuerId, subject) =>
      this.#load(
        'link',
        `${issuerId} ${subject}`,
        (state) => state.links.get(`${issuerId} ${subject}`) ?? { proofs: [], user: undefined },
      ),
  };

  #load<T>(kind: ChangeKind, key: string, read: (state: State) => T): Promise<Loaded<T>> {
    const name = `${kind} ${key}`;
    this.loads.set(name, (this.loads.get(name) ?? 0) + 1);
    const { promise, resolve, reject } = Promise.withResolvers<Loaded<T>>();
    let seen: Loaded<T> | undefined;
    const snapshot = (position: number): Loaded<T> => ({ value: read(this.at(position)), asOf: position });
    const load: PendingLoad = {
      kind,
      key,
      see: (position = this.position) => {
        seen = snapshot(position);
      },
      answer: () => {
        this.#pending = this.#pending.filter((other) => other !== load);
        resolve(seen ?? snapshot(this.position));
      },
      fail: (error) => {
        this.#pending = this.#pending.filter((other) => other !== load);
        reject(error);
      },
    };
    this.#pending.push(load);
    if (this.answersAtOnce) load.answer();
    return promise;
  }
}

/** A value that takes several steps to read. */
function* inSteps<T>(value: T): Steps<T> {
  yield;
  yield;
  return value;
}

/** Lets everything that can go on without an answer go on. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
