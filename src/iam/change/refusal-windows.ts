/**
 * Samples refused requests for the audit log. In a window of a minute, each principal and code has 10 rows, and then one row with the number
 * of the others. A request without a principal counts for its address. Each tenant has a share of its own of the windows, and so have the
 * requests without a principal: no flood takes rows from another tenant, and the rows of a minute are bounded.
 */

import { BoundedQueue } from '../../concurrency/bounded-queue.ts';
import { parseAddress } from '../../decision/address.ts';
import type { Principal } from '../../decision/model.ts';
import type { Refusal } from '../../domain/errors.ts';
import type { RequestId, TenantId } from '../../domain/ids.ts';
import { cutUtf8 } from '../../domain/text.ts';
import type { AuditRow } from '../../store/audit-rows.ts';
import { kept } from '../change/audit-username.ts';
import type { AuditTarget } from './change.ts';

export interface RefusedRequest {
  readonly refusal: Refusal;
  /** Undefined: the request proved no principal. */
  readonly principal: Principal | undefined;
  /** Undefined = missing. */
  readonly address: string | undefined;
  /** Addresses that the request counts for, separated by a space; undefined = the source is unknown. */
  readonly throttledAs: string | undefined;
  readonly method: string;
  /** The route's template. */
  readonly route: string;
  /** The resource that the path names. */
  readonly target: AuditTarget | undefined;
  /** The tenant that the request names. */
  readonly tenant: TenantId | undefined;
  readonly requestId: RequestId;
}

export interface RefusalBounds {
  /** Default: 10. */
  readonly rowsOfWindow?: number;
  /** Windows of a tenant, or of requests without a principal, at a time; default: 32. The others share one for each code. */
  readonly windowsOfGroup?: number;
  /** Tenants with windows of their own at a time; default: 1,000. The others share those of the platform. */
  readonly groups?: number;
  /** Rows that wait for `take`; default: 5,000. */
  readonly waitingRows?: number;
}

const ACTION = 'request.refuse';
const WINDOW_MS = 60_000;
const MAX_DETAIL_BYTES = 300;

/** Whose requests a window counts. */
interface Subject {
  readonly actorType: AuditRow['actorType'];
  readonly actorId: string | undefined;
  readonly tenantId: TenantId | undefined;
  readonly address: string | undefined;
}

interface Window {
  readonly subject: Subject;
  readonly code: Refusal['code'];
  readonly endsMs: number;
  /** The group whose share it takes; undefined: it is shared by the requests that found no place. */
  readonly group: string | undefined;
  /** Rows that it may still give. */
  left: number;
  others: number;
}

export class RefusalWindows {
  readonly #rowsOfWindow: number;
  readonly #windowsOfGroup: number;
  readonly #groups: number;
  /** In the order of their ends. */
  readonly #windows = new Map<string, Window>();
  /** The number of windows of each group. */
  readonly #sizes = new Map<string, number>();
  readonly #rows: BoundedQueue<AuditRow>;

  constructor(bounds: RefusalBounds = {}) {
    this.#rowsOfWindow = bounds.rowsOfWindow ?? 10;
    this.#windowsOfGroup = bounds.windowsOfGroup ?? 32;
    this.#groups = bounds.groups ?? 1_000;
    this.#rows = new BoundedQueue(bounds.waitingRows ?? 5_000);
  }

  /** @param nowMs a clock that never goes back */
  note(request: RefusedRequest, nowMs: number): void {
    this.#close(nowMs);
    const window = this.#windowOf(request, nowMs);
    if (window.left > 0 && this.#rows.push(rowOf(request))) window.left--;
    else window.others++;
  }

  /** Hands out up to `most` rows, the oldest first. */
  take(nowMs: number, most: number): readonly AuditRow[] {
    this.#close(nowMs);
    return this.#rows.take(most);
  }

  /** Hands out every row, with the numbers of windows that have not ended; for the end of the process. */
  takeAll(): readonly AuditRow[] {
    const rows = [
      ...this.#rows.take(this.#rows.length),
      ...[...this.#windows.values()].filter(({ others }) => others > 0).map(othersOf),
    ];
    this.#windows.clear();
    this.#sizes.clear();
    return rows;
  }

  #windowOf(request: RefusedRequest, nowMs: number): Window {
    const { code } = request.refusal;
    const subject = subjectOf(request);
    const group = subject.tenantId ?? '';
    const own = JSON.stringify([group, subject.actorId ?? networksOf(request.throttledAs), code]);
    const known = this.#windows.get(own);
    if (known !== undefined) return known;
    const size = this.#sizes.get(group);
    const endsMs = nowMs + WINDOW_MS;
    if (size === undefined ? this.#sizes.size < this.#groups || group === '' : size < this.#windowsOfGroup) {
      this.#sizes.set(group, (size ?? 0) + 1);
      return this.#open(own, { subject, code, endsMs, group, left: this.#rowsOfWindow, others: 0 });
    }
    const tenantId = size === undefined ? undefined : subject.tenantId;
    const shared = JSON.stringify([tenantId ?? '', code]);
    const several: Subject = {
      actorType: subject.tenantId === undefined ? 'anonymous' : 'system',
      actorId: undefined,
      tenantId,
      address: undefined,
    };
    return (
      this.#windows.get(shared) ??
      this.#open(shared, { subject: several, code, endsMs, group: undefined, left: 0, others: 0 })
    );
  }

  #open(key: string, window: Window): Window {
    this.#windows.set(key, window);
    return window;
  }

  /** Ends the windows whose minute is over. A window whose number finds no place stays, and goes on to count. */
  #close(nowMs: number): void {
    for (const [key, window] of this.#windows) {
      if (window.endsMs > nowMs) return;
      if (window.others > 0 && !this.#rows.push(othersOf(window))) return;
      this.#windows.delete(key);
      if (window.group !== undefined) this.#leave(window.group);
    }
  }

  #leave(group: string): void {
    const size = (this.#sizes.get(group) ?? 1) - 1;
    if (size === 0) this.#sizes.delete(group);
    else this.#sizes.set(group, size);
  }
}

function subjectOf({ principal, address }: RefusedRequest): Subject {
  return principal === undefined
    ? { actorType: 'anonymous', actorId: undefined, tenantId: undefined, address }
    : { actorType: principal.kind, actorId: principal.id, tenantId: principal.tenantId, address };
}

/** A host has a whole IPv6 network of 64 bits. */
function networksOf(addresses: string | undefined): string {
  return (addresses ?? '')
    .split(' ')
    .map((address) => {
      const parsed = parseAddress(address);
      return parsed?.family === 6 ? `${parsed.a}:${parsed.b}` : address;
    })
    .join(' ');
}

function rowOf(request: RefusedRequest): AuditRow {
  const { refusal, method, route, target, tenant, requestId } = request;
  return {
    ...subjectOf(request),
    action: ACTION,
    targetType: target?.type,
    targetId: target?.id,
    result: 'refused',
    before: undefined,
    after: {
      code: refusal.code,
      detail: kept(cutUtf8(refusal.message, MAX_DETAIL_BYTES)),
      method,
      route,
      ...(tenant === undefined ? {} : { tenant_id: tenant }),
    },
    requestId,
  };
}

function othersOf({ subject, code, others }: Window): AuditRow {
  return {
    ...subject,
    action: ACTION,
    targetType: undefined,
    targetId: undefined,
    result: 'refused',
    before: undefined,
    after: { code, others },
    requestId: undefined,
  };
}
