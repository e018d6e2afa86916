/** Attack 16: a role with 200,000 holders is deleted, and rights in that tenant end while its rows are removed. */

import pg from 'pg';
import { ATTACKER, type Attack, count, makeAttacker, paced, type Tally } from '../attack.ts';
import { calling } from './calling.ts';

const HOLDERS = Number(process.env['BENCH_HOLDERS'] ?? 200_000);
const BATCH = 10_000;
const ROLE = 'crowd';
const PER_SECOND = 4;
const MOST_DELETION_MS = 2000;
const MOST_ENDING_MS = 100;
/**
 * The share of endings that may take longer, beyond the share before the deletion: other processes share the machine.
 */
const MAY_BE_LATE = 0.05;

const DELETED = `deletion 204 within ${MOST_DELETION_MS} ms`;
const IN_TIME = `ending within ${MOST_ENDING_MS} ms`;
const LATE = 'later ending';
/** Before the deletion. */
const QUIET = 'quiet: ';
const QUIET_SHARE = 0.3;

export const crowdedRole: Attack = {
  number: 16,
  title: `a role with ${HOLDERS.toLocaleString('en')} holders is deleted`,
  async prepare(stand) {
    const token = await makeAttacker(stand, ['tenant-admin', 'developer']);
    await stand.administrator.must('POST', '/v1/iam/roles', { name: ROLE, permissions: ['models:read'] }, ATTACKER);
    const client = new pg.Client({ connectionString: stand.databaseUrl });
    await client.connect();
    try {
      await insertHolders(client);
    } finally {
      await client.end();
    }
    return { credentials: [token], counts: [HOLDERS] };
  },
  async run({ http }, { credentials = [], counts = [] }, untilMs) {
    const [as = ''] = credentials;
    const [holders = 0] = counts;
    const tally: Tally = {};
    const call = calling(http);
    const end = async (index: number, prefix = ''): Promise<void> => {
      const key = await call('POST', '/v1/iam/api-keys', {
        as,
        body: { description: 'x', scopes: ['chat:read'], expires_in_days: 1 },
      });
      const endings = [
        await call('DELETE', `/v1/iam/api-keys/${String(key.body['id'])}`, { as }),
        await call('POST', `/v1/iam/users/${idOf((index * 997) % holders)}/deactivate`, { as }),
      ];
      for (const { status, tookMs } of endings) {
        const done = status === 200 || status === 204;
        count(tally, done ? `${prefix}${tookMs <= MOST_ENDING_MS ? IN_TIME : LATE}` : `ending ${status}`);
      }
    };
    const quietMs = (untilMs - Date.now()) * QUIET_SHARE;
    await paced(PER_SECOND, Date.now() + quietMs, (index) => end(holders - 1 - index, QUIET));
    const deletion = call('DELETE', `/v1/iam/roles/${ROLE}?force=true`, { as }).then(({ status, tookMs }) =>
      count(
        tally,
        status === 204 && tookMs <= MOST_DELETION_MS ? DELETED : `deletion ${status} after ${Math.round(tookMs)} ms`,
      ),
    );
    await paced(PER_SECOND, untilMs, (index) => end(index));
    await deletion;
    return tally;
  },
  async after({ databaseUrl }, tally) {
    const broken: string[] = [];
    if (tally[DELETED] !== 1) broken.push('the role was not deleted in time');
    for (const [name, times] of Object.entries(tally)) {
      if (/^ending (\d|lost)/.test(name)) broken.push(`${times} x ${name}`);
    }
    const late = lateShare(tally, '');
    const quiet = lateShare(tally, QUIET);
    if (late > quiet + MAY_BE_LATE) {
      broken.push(
        `${percent(late)} of the endings took more than ${MOST_ENDING_MS} ms, ${percent(quiet)} before the deletion`,
      );
    }
    const client = new pg.Client({ connectionString: databaseUrl });
    await client.connect();
    const { rows } = await client.query<{ n: number }>(
      'select count(*)::int as n from user_roles where role_name = $1',
      [ROLE],
    );
    await client.end();
    return { note: `${rows[0]?.n ?? 0} rows left`, broken };
  },
};

function lateShare(tally: Tally, prefix: string): number {
  const late = tally[`${prefix}${LATE}`] ?? 0;
  return late / Math.max(1, late + (tally[`${prefix}${IN_TIME}`] ?? 0));
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

function idOf(index: number): string {
  return `usr_${index.toString(16).padStart(26, '0')}`;
}

/** Behind the API's back, without a line in the feed. */
async function insertHolders(client: pg.Client): Promise<void> {
  await client.query("set session_replication_role = 'replica'");
  for (let from = 0; from < HOLDERS; from += BATCH) {
    const ids = Array.from({ length: Math.min(BATCH, HOLDERS - from) }, (_, i) => idOf(from + i));
    await client.query(
      `insert into users (id, tenant_id, name, role_names) select id, $1, 'Holder', array[$2] from unnest($3::text[]) id`,
      [ATTACKER, ROLE, ids],
    );
    await client.query(
      `insert into user_roles (user_id, role_name, tenant_id, status) select id, $2, $1, 'active' from unnest($3::text[]) id`,
      [ATTACKER, ROLE, ids],
    );
  }
  await client.query("set session_replication_role = 'origin'");
  await client.query('analyze users, user_roles');
}
