/**
 * Writes recorded decisions. While the database is unreachable, the writer repeats one batch and takes no other, so an
 * outage costs the memory of one batch. A batch that the database rejects is dropped and counted.
 */

import { Fault } from '../domain/errors.ts';
import type { RecentDecisionRow } from '../telemetry/recent-decision.ts';
import { statementError } from './faults.ts';
import { PeriodicWriter, type WriterOptions } from './periodic-writer.ts';

/** Holds decisions until they are written. */
interface RecentDecisionSource {
  take(): readonly RecentDecisionRow[];
  /** Counts rows that were dropped. */
  lost(rows: readonly RecentDecisionRow[]): void;
}

interface RecentDecisionWriterOptions extends WriterOptions {
  readonly source: RecentDecisionSource;
}

/**
 * The same batch may be written twice: a connection can break after the commit. Several gates may have the first allow
 * of a principal, route and model, and one of them is stored. Rows go in one order, so that two gates do not wait for
 * each other.
 *
 * The allows of API keys also set the last day of each permission that a key used. Rows of the same day are not locked.
 * The others are locked in the order of the primary key.
 */
const WRITE = {
  name: 'write_recent_decisions',
  text: `
    with given as materialized (
      select * from jsonb_to_recordset($1::jsonb) as t(request_id text, time timestamptz, tenant_id text, outcome text, code text,
        sampled boolean, principal_type text, principal_id text, method text, path text, route text, permission text, resources text[],
        client_ip text, policy text, detail text, facts jsonb, first_of text, shadow boolean, client_request_id text,
        would_deny text, would_allow text)
    ), stored as (
      insert into recent_decisions select * from given order by tenant_id, first_of on conflict do nothing
    ), used as (
      select principal_id as key_id, permission, max(cast(time at time zone 'UTC' as date)) as used_on from given
      where outcome = 'allow' and not shadow and principal_type = 'api_key' and principal_id is not null and permission is not null
      group by principal_id, permission
    )
    insert into key_permissions_used as u (key_id, permission, last_used_on)
    select key_id, permission, used_on from used
    where not exists (
      select from key_permissions_used known
      where known.key_id = used.key_id and known.permission = used.permission and known.last_used_on >= used.used_on)
    order by key_id, permission
    on conflict (key_id, permission) do update set last_used_on = greatest(u.last_used_on, excluded.last_used_on)`,
};

export class RecentDecisionWriter extends PeriodicWriter {
  readonly #source: RecentDecisionSource;
  #pending: readonly RecentDecisionRow[] = [];

  constructor({ source, ...options }: RecentDecisionWriterOptions) {
    super(options);
    this.#source = source;
  }

  protected override async write(): Promise<void> {
    if (this.#pending.length === 0) this.#pending = this.#source.take();
    if (this.#pending.length === 0) return;
    try {
      await this.db.query({ ...WRITE, values: [JSON.stringify(this.#pending)] });
      this.#pending = [];
    } catch (error) {
      if (!(statementError(error) instanceof Fault)) {
        this.#source.lost(this.#pending);
        this.#pending = [];
      }
      throw error;
    }
  }
}
