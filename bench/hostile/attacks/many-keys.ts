/** Attack 12: many keys with a rate limit of their own, each used once a minute, over two borders of a minute. */

import { connect } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { digestOf } from '../../../src/identity/api-keys.ts';
import { encodeFrame } from '../../frames.ts';
import { keyText } from '../../population.ts';
import { ATTACKER, type Attack, count, makeAttacker, type Tally } from '../attack.ts';

const KEYS = Number(process.env['BENCH_KEYS'] ?? 100_000);
const RATE_LIMIT = 100;
const MINUTE_MS = 60_000;
const BORDERS = 2;
/** After the last border, until its work is done. */
const TAIL_MS = 8000;
const BATCH = 10_000;
const STEP_MS = 2;
const MAX_UNDER_WAY = 2000;
const CONNECTIONS = 4;
const PATH = '/envoy.service.auth.v3.Authorization/Check';

export const manyKeys: Attack = {
  number: 12,
  title: `${KEYS.toLocaleString('en')} keys with a rate limit, each used once a minute`,
  durationMs: (nowMs) => MINUTE_MS - (nowMs % MINUTE_MS) + (BORDERS - 1) * MINUTE_MS + TAIL_MS,
  async prepare(stand) {
    await makeAttacker(stand);
    const client = new pg.Client({ connectionString: stand.databaseUrl });
    await client.connect();
    try {
      await insertKeys(client);
    } finally {
      await client.end();
    }
    return { counts: [KEYS] };
  },
  async run({ mesh }, { counts = [] }, untilMs) {
    const [keys = 0] = counts;
    const tally: Tally = {};
    const { address, ca, cert, key } = mesh;
    const sessions = Array.from({ length: CONNECTIONS }, () => {
      const session = connect(`https://${address}`, { ca, cert, key, servername: 'postern' });
      session.on('error', () => undefined);
      return session;
    });
    let underWay = 0;
    const one = (index: number): void => {
      const session = sessions[index % CONNECTIONS];
      if (session === undefined || session.destroyed || underWay >= MAX_UNDER_WAY) {
        count(tally, 'not sent');
        return;
      }
      underWay += 1;
      const stream = session.request({
        ':method': 'POST',
        ':path': PATH,
        'content-type': 'application/grpc',
        te: 'trailers',
      });
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.once('error', () => undefined);
      stream.once('close', () => {
        underWay -= 1;
        count(tally, chunks.length === 0 ? 'lost' : codeOf(Buffer.concat(chunks)));
      });
      stream.end(framed(index));
    };
    const perMs = keys / MINUTE_MS;
    const begunMs = Date.now();
    for (let next = 0; Date.now() < untilMs; await sleep(STEP_MS)) {
      for (; next < (Date.now() - begunMs) * perMs; next++) one(next % keys);
    }
    for (const session of sessions) session.destroy();
    return tally;
  },
};

async function insertKeys(client: pg.Client): Promise<void> {
  await client.query("set session_replication_role = 'replica'");
  for (let from = 0; from < KEYS; from += BATCH) {
    const indexes = Array.from({ length: Math.min(BATCH, KEYS - from) }, (_, i) => from + i);
    await client.query(
      `insert into api_keys (id, tenant_id, description, digest, prefix, last_four, scopes, rate_limit_rpm, expires_at, created_by)
       select 'key_' || lpad(to_hex(i), 26, '0'), $1, 'Key ' || i, decode(digest, 'hex'), 'psk_0000', '0000', '{models:read}', $2,
              now() + interval '1 day', 'benchmark'
       from unnest($3::int[], $4::text[]) as k(i, digest)`,
      [ATTACKER, RATE_LIMIT, indexes, indexes.map((i) => digestOf(keyText(i)))],
    );
  }
  await client.query("set session_replication_role = 'origin'");
  await client.query('analyze api_keys');
}

function framed(index: number): Buffer {
  const frame = encodeFrame({ method: 'GET', path: '/v1/models', authorization: `Bearer ${keyText(index)}` });
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(frame.length, 1);
  return Buffer.concat([prefix, frame]);
}

/** CheckResponse.status is field 1, its code field 1 in turn; proto3 leaves a zero out. */
function codeOf(answer: Buffer): string {
  const message = answer.subarray(5);
  const denied = message[0] === 0x0a && (message[1] ?? 0) > 0 && message[2] === 0x08 && message[3] !== 0;
  return denied ? `code ${message[3]}` : 'allowed';
}
