import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Principal } from '../../src/decision/model.ts';
import { Refusal } from '../../src/domain/errors.ts';
import { makeId, parseTenantId } from '../../src/domain/ids.ts';
import { RefusalWindows, type RefusedRequest } from '../../src/iam/change/refusal-windows.ts';
import type { AuditRow } from '../../src/store/audit-rows.ts';
import { runs } from '../support/properties.ts';

const MINUTE_MS = 60_000;
const REQUEST_ID = makeId('req', 0, new Uint8Array(10));
const userId = (number: number) => makeId('usr', number, new Uint8Array(10));

interface Asked {
  /** Undefined: no principal. */
  readonly tenant: string | undefined;
  readonly who: number;
  readonly code: 'insufficient_permission' | 'tenant_mismatch';
}

function user(tenant: string, number: number): Principal {
  const tenantId = parseTenantId(tenant);
  if (tenantId === undefined) throw new Error(`no tenant id: ${tenant}`);
  return { kind: 'user', id: userId(number), tenantId, roles: [], platformAdmin: false, sessionId: undefined };
}

function refused({ tenant, who, code }: Asked, address = `192.0.2.${who}`): RefusedRequest {
  return {
    refusal: new Refusal(code, 'No.'),
    principal: tenant === undefined ? undefined : user(tenant, who),
    address,
    throttledAs: address,
    method: 'GET',
    route: '/v1/iam/users',
    target: undefined,
    tenant: undefined,
    requestId: REQUEST_ID,
  };
}

/** The part of a row that the twin foresees. */
function shown({ actorType, actorId, tenantId, after }: AuditRow) {
  const { code, others } = { others: undefined, ...(typeof after === 'object' ? after : {}) } as {
    code?: unknown;
    others?: unknown;
  };
  return { actorType, actorId, tenantId, code, others };
}
type Shown = ReturnType<typeof shown>;

const BOUNDS = { rowsOfWindow: 2, windowsOfGroup: 2, groups: 2 };

/** The rule in lists: nothing is kept up to date, everything is counted again for each request. */
function naiveRows(asked: readonly (Asked & { readonly atMs: number })[]): readonly Shown[] {
  interface Open {
    readonly group: string;
    readonly key: string;
    readonly own: boolean;
    readonly endsMs: number;
    readonly row: Omit<Shown, 'others'>;
    count: number;
  }
  const rows: Shown[] = [];
  let open: Open[] = [];
  const end = (nowMs: number): void => {
    for (const { endsMs, count, own, row } of open) {
      const others = own ? count - BOUNDS.rowsOfWindow : count;
      if (endsMs <= nowMs && others > 0) rows.push({ ...row, others });
    }
    open = open.filter(({ endsMs }) => endsMs > nowMs);
  };
  for (const { tenant, who, code, atMs } of asked) {
    end(atMs);
    const group = tenant ?? 'strangers';
    const key = `${group} ${who} ${code}`;
    const isStranger = tenant === undefined;
    const row = {
      actorType: isStranger ? 'anonymous' : 'user',
      actorId: isStranger ? undefined : userId(who),
      tenantId: tenant,
      code,
    } as const;
    let window = open.find((each) => each.own && each.key === key);
    if (window === undefined) {
      const owned = open.filter(({ own }) => own);
      const groups = new Set(owned.map((each) => each.group));
      const size = owned.filter((each) => each.group === group).length;
      const fits = groups.has(group) ? size < BOUNDS.windowsOfGroup : groups.size < BOUNDS.groups || isStranger;
      if (fits) {
        window = { group, key, own: true, endsMs: atMs + MINUTE_MS, row, count: 0 };
      } else {
        const of = groups.has(group) ? tenant : undefined;
        const shared = `${of ?? 'strangers'} ${code}`;
        window = open.find((each) => !each.own && each.key === shared) ?? {
          group: of ?? 'strangers',
          key: shared,
          own: false,
          endsMs: atMs + MINUTE_MS,
          row: { actorType: isStranger ? 'anonymous' : 'system', actorId: undefined, tenantId: of, code } as const,
          count: 0,
        };
      }
      if (!open.includes(window)) open.push(window);
    }
    window.count++;
    if (window.own && window.count <= BOUNDS.rowsOfWindow) rows.push({ ...row, others: undefined });
  }
  end(Number.POSITIVE_INFINITY);
  return rows;
}

const requests = fc.array(
  fc.record({
    tenant: fc.constantFrom('acme', 'globex', 'initech', undefined),
    who: fc.integer({ min: 1, max: 4 }),
    code: fc.constantFrom<Asked['code']>('insufficient_permission', 'tenant_mismatch'),
    afterMs: fc.constantFrom(0, 1_000, 20_000, MINUTE_MS),
  }),
  { maxLength: 60 },
);

it('the rows of refused requests are those of the naive rule, for any order of callers, codes and times', () => {
  fc.assert(
    fc.property(requests, (generated) => {
      const windows = new RefusalWindows(BOUNDS);
      const taken: AuditRow[] = [];
      let atMs = 0;
      const asked = generated.map(({ afterMs, ...each }) => {
        atMs += afterMs;
        return { ...each, atMs };
      });
      for (const each of asked) {
        windows.note(refused(each), each.atMs);
        taken.push(...windows.take(each.atMs, 3));
      }
      const rows = [...taken, ...windows.takeAll()].map(shown);
      expect(rows).toEqual(naiveRows(asked));
      const told = rows.map(({ others }) => (typeof others === 'number' ? others : 1));
      expect(told.reduce((sum, each) => sum + each, 0)).toBe(asked.length);
    }),
    { numRuns: runs(500) },
  );
});

it('a flood from any number of addresses gives at most 352 rows and one number for each code in a minute', () => {
  const windows = new RefusalWindows();
  const code = 'tenant_mismatch';
  for (let i = 0; i < 100_000; i++)
    windows.note(
      refused({ tenant: undefined, who: i, code }, `2001:db8:${(i >> 8).toString(16)}:${i & 255}::1`),
      i / 10,
    );
  const rows = windows.takeAll();
  expect(rows.filter(({ requestId }) => requestId !== undefined)).toHaveLength(32);
  expect(rows.filter(({ requestId }) => requestId === undefined).map(({ after }) => after)).toEqual([
    { code, others: 99_968 },
  ]);
  // A host has a network of 2^64 addresses.
  for (let i = 0; i < 1_000; i++)
    windows.note(refused({ tenant: undefined, who: i, code }, `2001:db8::${i.toString(16)}`), 100_000);
  expect(windows.takeAll()).toHaveLength(11);
});

it('a flood in one tenant takes no row from another tenant', () => {
  const windows = new RefusalWindows();
  for (let i = 0; i < 10_000; i++) windows.note(refused({ tenant: 'acme', who: i, code: 'tenant_mismatch' }), 0);
  windows.note(refused({ tenant: 'globex', who: 1, code: 'tenant_mismatch' }), 0);
  expect(windows.takeAll().filter(({ tenantId }) => tenantId === 'globex')).toHaveLength(1);
});

it('while no row is taken, at most 5,000 wait and every further request is in a number', () => {
  const windows = new RefusalWindows();
  const tenants = Array.from({ length: 600 }, (_, i) => `tenant-${i}`);
  for (const tenant of tenants) {
    for (let i = 0; i < 20; i++) windows.note(refused({ tenant, who: 1, code: 'tenant_mismatch' }), 0);
  }
  // Their windows have ended, and their numbers find no place yet.
  windows.note(refused({ tenant: 'acme', who: 1, code: 'tenant_mismatch' }), MINUTE_MS);
  const first = windows.take(MINUTE_MS, 10_000);
  expect(first).toHaveLength(5_000);
  const rows = [...first, ...windows.take(MINUTE_MS, 10_000), ...windows.takeAll()].map(shown);
  const told = rows.map(({ others }) => (typeof others === 'number' ? others : 1));
  expect(told.reduce((sum, each) => sum + each, 0)).toBe(600 * 20 + 1);
});
