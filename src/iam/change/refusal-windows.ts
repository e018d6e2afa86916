/**
 * Samples rejected requests for the audit log. In a window of one minute, each pair of principal and code has up to 10
 * rows, and one more row with the number of the other requests. A request without a principal counts for its address.
 * Each tenant has its own windows, and so have the requests without a principal. So a flood takes no rows from another
 * tenant, and the number of rows in a minute is bounded.
 */

import { BoundedQueue } from '../../concurrency/bounded-queue.ts';
import { networkOf } from '../../decision/address.ts';
import type { Principal } from '../../decision/model.ts';
import type { Refusal } from '../../domain/errors.ts';
import type { TenantId } from '../../domain/ids.ts';
import { cutUtf8 } from '../../domain/text.ts';
import type { AuditRow } from '../../store/audit-rows.ts';
import { type AuditTarget, toStorableText } from './audit-row.ts';

export interface RefusedRequest {
  readonly refusal: Pick<Refusal, 'code' | 'message' | 'extras' | 'audited'>;
  /** Undefined if the credential proves no principal. */
  readonly principal: Principal | undefined;
  /** Undefined if the address is unknown. */
  readonly address: string | undefined;
  /** The address that the request counts for; undefined if the source is unknown. */
  readonly throttledAs: string | undefined;
  readonly method: string;
  /** The route's template. */
  readonly route: string;
  /** The resource that the path names. */
  readonly target: AuditTarget | undefined;
  /** The tenant that the request names. */
  readonly tenant: TenantId | undefined;
  readonly requestId: string;
}

interface RefusalBounds {
  /** Default: 10. */
  readonly rowsOfWindow?: number;
  /**
   * The number of windows of a tenant, or of requests without a principal. Default: 32. Further requests share one
   * window for each code.
   */
  readonly windowsOfGroup?: number;
  /**
   * The number of tenants with their own windows. Default: 1,000. Further tenants share the windows of the platform.
   */
  readonly groups?: number;
  /** The number of rows that wait for `take`. Default: 5,000. */
  readonly waitingRows?: number;
}

const ACTION = 'request.refuse';
const WINDOW_MS = 60_000;
const MAX_DETAIL_BYTES = 300;

/** The principal or address whose requests a window counts. */
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
  /** The group that the window counts for; undefined for a shared window. */
  readonly group: string | undefined;
  /** The number of rows that the window may still produce. */
  left: number;
  others: number;
}

export class RefusalWindows {
  readonly #rowsOfWindow: number;
  readonly #windowsOfGroup: number;
  readonly #groups: number;
  /** In ascending order of their ends. */
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

  /** @param nowMs a monotonic clock */
  note(request: RefusedRequest, nowMs: number): void {
    this.#close(nowMs);
    const window = this.#windowOf(request, nowMs);
    if (window.left > 0 && this.#rows.push(rowOf(request))) window.left--;
    else window.others++;
  }

  /** Removes and returns up to `most` rows, the oldest first. */
  take(nowMs: number, most: number): readonly AuditRow[] {
    this.#close(nowMs);
    return this.#rows.take(most);
  }

  /**
   * Removes and returns all rows, including the counts of windows that have not ended. Call it when the process ends.
   */
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
    const own = JSON.stringify([group, subject.actorId ?? networkOf(request.throttledAs), code]);
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

  /**
   * Ends the windows whose minute is over. If the rows are full, a window with a count stays open and continues to
   * count.
   */
  #close(nowMs: number): void {
    for (const [key, window] of this.#windows) {
      if (window.endsMs > nowMs) return;
      if (window.others > 0 && !this.#rows.push(othersOf(window))) return;
      this.#windows.delete(key);
      if (window.group !== undefined) this.#release(window.group);
    }
  }

  #release(group: string): void {
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

function rowOf(request: RefusedRequest): AuditRow {
  const { refusal, method, route, target, tenant, requestId } = request;
  return {
    ...subjectOf(request),
    action: ACTION,
    targetType: target?.type,
    targetId: target?.id,
    result: 'refused',
    after: {
      code: refusal.code,
      ...(refusal.extras.reason === undefined ? {} : { reason: refusal.extras.reason }),
      detail: toStorableText(cutUtf8(refusal.message, MAX_DETAIL_BYTES)),
      method,
      route,
      ...(tenant === undefined ? {} : { tenant_id: tenant }),
    },
    requestId,
  };
}

function othersOf({ subject, code, others }: Window): AuditRow {
  return { ...subject, action: ACTION, result: 'refused', after: { code, others } };
}
