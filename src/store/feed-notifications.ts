/** Listens for PostgreSQL's notifications on a connection of its own, and comes back whenever that is lost. */

import type pg from 'pg';
import type { Fault } from '../domain/errors.ts';
import type { Database } from './database.ts';
import { connectionFault } from './faults.ts';
import { endClient } from './pool.ts';
import { REPORT_CHANNEL } from './replicas.ts';

const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 5000;

export interface NotificationEvents {
  /** @param session the id of the PostgreSQL process that sends notifications from now on */
  onConnect(session: number): void;
  /**
   * Something may have changed: a notification came, or some may have been missed before this connection was made.
   * @param seq the change that it was about; undefined where that cannot be told
   */
  onChange(seq: number | undefined): void;
  /**
   * A writer asks every replica to report how far it has applied the feed, or may have asked before this connection was
   * made.
   */
  onReportRequest(): void;
  onError(error: Fault): void;
}

/** Begins at once, in the background. The function that it gives ends it. */
export function listenForChanges(db: Database, events: NotificationEvents): () => Promise<void> {
  let stopped = false;
  let client: pg.Client | undefined;
  let retry: NodeJS.Timeout | undefined;
  let backoffMs = FIRST_BACKOFF_MS;
  let connecting = connect();

  async function connect(): Promise<void> {
    const mine = db.newClient();
    client = mine;
    let lost = false;
    const lose = (error: unknown): void => {
      if (lost || stopped) {
        return;
      }
      lost = true;
      mine.connection.stream.destroy();
      events.onError(connectionFault(error));
      retry = setTimeout(() => {
        connecting = connect();
      }, backoffMs);
      backoffMs = Math.min(backoffMs * 2, MAX_BACKOFF_MS);
    };
    mine.on('error', lose);
    mine.on('end', () => lose(new Error('the connection for notifications ended')));
    mine.on('notification', ({ channel, payload }) => {
      if (channel === REPORT_CHANNEL) events.onReportRequest();
      else events.onChange(seqIn(payload));
    });
    try {
      await mine.connect();
      const { rows } = await mine.query('select pg_backend_pid() as pid');
      await mine.query(`listen postern_changes; listen ${REPORT_CHANNEL}`);
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
    if (client !== undefined) {
      await endClient(client);
    }
    await connecting;
  };
}

function seqIn(payload: string | undefined): number | undefined {
  const seq = Number(payload ?? '');
  return Number.isSafeInteger(seq) && seq > 0 ? seq : undefined;
}
