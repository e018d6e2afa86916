/** Listens for PostgreSQL's notifications on a separate connection, and reconnects when that is lost. */

import type pg from 'pg';
import type { Fault } from '../domain/errors.ts';
import type { Database } from './database.ts';
import { connectionFault } from './faults.ts';
import { endClient } from './pool.ts';
import { REPORT_CHANNEL } from './replicas.ts';

const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 5000;

interface NotificationEvents {
  /** @param session id of the PostgreSQL process that sends notifications on the new connection */
  onConnect(session: number): void;
  /**
   * A notification arrived, or notifications may have been missed before the connection was open.
   * @param seq sequence number of the change; undefined if unknown
   */
  onChange(seq: number | undefined): void;
  /** A writer requested reports of the applied position, or may have done so before the connection was open. */
  onReportRequest(): void;
  onError(error: Fault): void;
}

/** Starts in the background. Returns a function that stops it. */
export function listenForChanges(db: Database, events: NotificationEvents): () => Promise<void> {
  let stopped = false;
  let client: pg.Client | undefined;
  let retry: NodeJS.Timeout | undefined;
  let backoffMs = FIRST_BACKOFF_MS;
  void connect();

  async function connect(): Promise<void> {
    const own = db.newClient();
    client = own;
    let lost = false;
    const lose = (error: unknown): void => {
      if (lost || stopped) return;
      lost = true;
      own.connection.stream.destroy();
      events.onError(connectionFault(error));
      retry = setTimeout(() => void connect(), backoffMs);
      backoffMs = Math.min(backoffMs * 2, MAX_BACKOFF_MS);
    };
    own.on('error', lose);
    own.on('end', () => lose(new Error('the connection for notifications ended')));
    own.on('notification', ({ channel, payload }) => {
      if (channel === REPORT_CHANNEL) events.onReportRequest();
      else events.onChange(seqIn(payload));
    });
    try {
      await own.connect();
      const { rows } = await own.query('select pg_backend_pid() as pid');
      await own.query(`listen postern_changes; listen ${REPORT_CHANNEL}`);
      backoffMs = FIRST_BACKOFF_MS;
      events.onConnect(Number(rows[0]?.pid));
      events.onChange(undefined);
      events.onReportRequest();
    } catch (error) {
      lose(error);
    }
  }

  return async () => {
    stopped = true;
    clearTimeout(retry);
    // connect() is not awaited: pg never answers the connect of a client that was ended before.
    if (client !== undefined) await endClient(client);
  };
}

function seqIn(payload: string | undefined): number | undefined {
  const seq = Number(payload ?? '');
  return Number.isSafeInteger(seq) && seq > 0 ? seq : undefined;
}
