/** Attack 15: 50 callers that wait for locked rows of their tenant, which stay locked while the attack lasts. */

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { ATTACKER, type Attack, count, makeAttacker, type Tally } from '../attack.ts';
import { INNOCENTS } from '../innocents.ts';
import { calling } from './calling.ts';

const CALLERS = 50;
const EVERY_MS = 250;
const PASSWORD = 'a password of the stuck tenant';
/** The default `database.pool-size` and the eight other connections, of the supervisor, a gate and the API. */
const MOST_CONNECTIONS = 3 * (10 + 8);
const OTHER = 'other tenant: ';

/** Holds the lock from the preparation to the end of the attack. */
let holder: pg.Client | undefined;

export const stuckTenant: Attack = {
  number: 15,
  title: 'callers that wait for locked users of their tenant',
  async prepare(stand) {
    await makeAttacker(stand);
    for (let n = 0; n < CALLERS; n++) {
      await stand.administrator.must(
        'POST',
        '/v1/iam/users',
        { email: emailOf(n), name: emailOf(n), password: PASSWORD },
        ATTACKER,
      );
    }
    holder = new pg.Client({ connectionString: stand.databaseUrl });
    await holder.connect();
    await holder.query('begin');
    await holder.query('select from users where tenant_id = $1 for update', [ATTACKER]);
    return { form: `${CALLERS} logins at once` };
  },
  async run({ http }, _, untilMs) {
    const tally: Tally = {};
    const call = calling(http);
    const callers = Array.from({ length: CALLERS }, async (_, n) => {
      while (Date.now() < untilMs) {
        const { status } = await call('POST', '/v1/auth/login', { body: { email: emailOf(n), password: PASSWORD } });
        count(tally, `login ${status}`);
      }
    });
    const [tenant = ''] = INNOCENTS;
    const email = `user@${tenant}.example`;
    while (Date.now() < untilMs) {
      const begunMs = Date.now();
      const login = await call('POST', '/v1/auth/login', { body: { email, password: `the password of ${email}` } });
      const as = String(login.body['access_token']);
      const key = await call('POST', '/v1/iam/api-keys', {
        as,
        body: { description: 'Mine', scopes: ['chat:*'], expires_in_days: 1 },
      });
      const revoked = await call('DELETE', `/v1/iam/api-keys/${String(key.body['id'])}`, { as });
      count(tally, `${OTHER}login ${login.status}, key ${key.status}, revocation ${revoked.status}`);
      await sleep(Math.max(0, begunMs + EVERY_MS - Date.now()));
    }
    await Promise.all(callers);
    return tally;
  },
  async after(_stand, tally) {
    const broken: string[] = [];
    const others = Object.entries(tally).filter(([name]) => name.startsWith(OTHER));
    for (const [name, times] of others) {
      if (name !== `${OTHER}login 200, key 201, revocation 204`) broken.push(`${times} x ${name}`);
    }
    if (others.length === 0) broken.push('no other tenant was answered');
    // The lock is still held: a connection that was given up would still wait for it.
    const found = await holder?.query<{ n: number }>(
      `select count(*)::int as n from pg_stat_activity where datname = current_database() and application_name = 'postern'`,
    );
    await holder?.end();
    const connections = found?.rows[0]?.n ?? 0;
    if (connections > MOST_CONNECTIONS) broken.push(`${connections} connections, of at most ${MOST_CONNECTIONS}`);
    return { note: `${connections} connections`, broken };
  },
};

function emailOf(n: number): string {
  return `stuck-${n}@${ATTACKER}.example`;
}
