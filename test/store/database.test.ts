import { createServer, Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { Fault } from '../../src/domain/errors.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { runPipelined, runPrepared } from '../../src/store/prepared.ts';
import { databaseTime } from '../../src/store/time.ts';
import { transaction } from '../../src/store/transaction.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { seedTenant } from './seed.ts';

let fresh: FreshDatabase;

beforeAll(async () => {
  fresh = await freshDatabase();
  await seedTenant(fresh.db, 'a');
  await seedTenant(fresh.db, 'b');
});
afterAll(() => fresh.close());

const select = { text: 'select 1 as one' };
/** Ends the connection that runs it, as an administrator or a fail-over would. */
const suicide = 'select pg_terminate_backend(pg_backend_pid())';

async function withDatabase(
  options: Parameters<typeof openDatabase>[0],
  use: (db: Database) => Promise<void>,
): Promise<void> {
  const db = openDatabase(options);
  try {
    await use(db);
  } finally {
    await db.close();
  }
}

test('times are read from a database whose default is another form of dates', async () => {
  const change = `do $$ begin execute format('alter database %I set datestyle = ''German''', current_database()); end $$`;
  await fresh.db.query({ text: change });
  await withDatabase({ url: fresh.url }, async (db) => {
    expect((await databaseTime(db.knex)).date).toBeInstanceOf(Date);
  });
});

describe('an unreachable database is a fault', () => {
  test.each([
    ['no server listens at the port', 'postgresql://x@127.0.0.1:1/x'],
    ['there is no socket', 'postgresql://x@/x?host=/nowhere'],
    ['the name has no address', 'postgresql://x@host.invalid/x'],
  ])('%s', (_, url) =>
    withDatabase({ url }, async (db) => {
      await expect(db.query(select)).rejects.toBeInstanceOf(Fault);
      await expect(db.knex.select(1)).rejects.toBeInstanceOf(Fault);
      await expect(transaction(db, async (trx) => trx.raw('select 1'))).rejects.toBeInstanceOf(Fault);
    }),
  );

  test('if the database does not exist', () =>
    withDatabase({ url: fresh.url.replace(/\/test_\w+\?/, '/missing?') }, async (db) => {
      await expect(db.query(select)).rejects.toBeInstanceOf(Fault);
    }));

  test('if the server accepts connections and never answers', async () => {
    const mute = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => mute.once('listening', resolve));
    const address = mute.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    try {
      await withDatabase({ url: `postgresql://x@127.0.0.1:${port}/x`, acquireTimeoutMs: 100 }, async (db) => {
        await expect(db.query(select)).rejects.toBeInstanceOf(Fault);
      });
    } finally {
      mute.close();
    }
  });

  test('if the server does not end a statement; the pool closes its connection, and the next one works', () =>
    withDatabase({ url: fresh.url, poolMax: 1, queryTimeoutMs: 1000 }, async (db) => {
      await fresh.db.knex.raw(`
        create function hang() returns void language plpgsql as
          $$ begin perform pg_sleep(60); exception when query_canceled then perform pg_sleep(60); end $$`);
      await expect(db.query({ text: 'select hang()' })).rejects.toThrow('the database did not answer within 1000 ms');
      expect(await db.query(select)).toEqual([{ one: 1 }]);
      const late = transaction(db, async (trx) => trx.raw('select hang()'));
      await expect(late).rejects.toThrow('the database did not answer within 1000 ms');
      expect(await db.query(select)).toEqual([{ one: 1 }]);
    }));

  test('but not if the answer came in time and the process did not run meanwhile', () =>
    withDatabase({ url: fresh.url, poolMax: 1, queryTimeoutMs: 1000 }, async (db) => {
      expect(await db.query(select)).toEqual([{ one: 1 }]);
      const answer = db.query({ text: 'select 1 as one from pg_sleep(0.1)' });
      await new Promise((resolve) => setImmediate(resolve));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500);
      expect(await answer).toEqual([{ one: 1 }]);
    }));

  test('if no connection is free in time', () =>
    withDatabase({ url: fresh.url, poolMax: 1, acquireTimeoutMs: 1000 }, async (db) => {
      await transaction(db, async () => {
        await expect(db.query(select)).rejects.toBeInstanceOf(Fault);
      });
    }));

  test('if the server ends a busy or an idle connection', async () => {
    await expect(fresh.db.query({ text: suicide })).rejects.toBeInstanceOf(Fault);
    await expect(transaction(fresh.db, async (trx) => trx.raw(suicide))).rejects.toBeInstanceOf(Fault);
    await withDatabase({ url: fresh.url, poolMax: 1 }, async (db) => {
      const [row] = await db.query({ text: 'select pg_backend_pid() as pid' });
      await fresh.db.query({ text: 'select pg_terminate_backend($1, 5000)', values: [row?.['pid']] });
      // Either it was noticed, and a new connection is made, or it is noticed now; nothing hangs and nothing crashes.
      await db.query(select).catch((error: unknown) => expect(error).toBeInstanceOf(Fault));
      expect(await db.query(select)).toEqual([{ one: 1 }]);
    });
  });

  test('if the connection is lost during COMMIT, because the outcome is unknown', async () => {
    await fresh.db.knex.raw(`
      create table doubtful (x int);
      create function cut() returns trigger language plpgsql as $$ begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
      create constraint trigger doubtful_cut after insert on doubtful deferrable initially deferred for each row execute function cut();`);
    await expect(
      transaction(fresh.db, async (trx) => trx.raw('insert into doubtful values (1)')),
    ).rejects.toBeInstanceOf(Fault);
  });

  test('PostgreSQL ends a transaction that is idle for ten seconds', () =>
    withDatabase({ url: fresh.url, poolMax: 1 }, async (db) => {
      const limit = { text: 'show idle_in_transaction_session_timeout' };
      const within = await transaction(db, async (trx) => (await trx.raw<{ rows: unknown[] }>(limit.text)).rows);
      expect(within).toEqual([{ idle_in_transaction_session_timeout: '10s' }]);
      expect(await db.query(limit)).toEqual(within);
    }));

  test('a transaction whose work ignored a failed statement rejects', async () => {
    const swallowed = transaction(fresh.db, async (trx) => {
      await trx.raw('update tenants set name = ? where id = ?', ['lost', 'a']);
      await trx.raw('select 1 / 0').catch(() => undefined);
    });
    await expect(swallowed).rejects.toBeInstanceOf(Fault);
  });
});

describe('statements in a transaction', () => {
  const named = async (id: string): Promise<unknown> =>
    (await fresh.db.knex('tenants').where({ id }).first('name'))?.name;
  const rename = { name: 'rename_tenant', text: 'update tenants set name = $2 where id = $1' };
  const fails = { name: 'fails', text: 'select 1 / $1::int' };

  test('are part of it as prepared statements, from the query builder, and as raw SQL with named values', async () => {
    const work = transaction(fresh.db, async (trx) => {
      await runPrepared(trx, rename, ['b', 'prepared']);
      await trx('tenants').where({ id: 'b' }).update({ name: 'built' });
      await trx.raw('update tenants set name = :name where id = :id', { id: 'b', name: 'named' });
      expect(await trx('tenants').where({ id: 'b' }).first('name')).toEqual({ name: 'named' });
      throw new Error('no');
    });
    await expect(work).rejects.toThrow('no');
    expect(await named('b')).not.toBe('named');
  });

  test('are all rolled back if one fails, and the transaction rejects with its error', async () => {
    await transaction(fresh.db, async (trx) => runPrepared(trx, rename, ['b', 'before']));
    const work = transaction(fresh.db, async (trx) => {
      await trx.raw('update tenants set name = ? where id = ?', ['lost', 'b']);
      await runPrepared(trx, fails, [0]);
    });
    await expect(work).rejects.toMatchObject({ code: '22012' });
    expect(await named('b')).toBe('before');
  });

  test('of one pipeline run in order, and each sees the effects of those before it', async () => {
    const read = { name: 'read_name', text: 'select name from tenants where id = $1' };
    const rows = await transaction(fresh.db, (trx) =>
      runPipelined(trx, [
        [rename, 'a', 'one'],
        [read, 'a'],
        [rename, 'a', 'two'],
        [read, 'a'],
      ]),
    );
    expect(rows).toEqual([[], [{ name: 'one' }], [], [{ name: 'two' }]]);
  });

  test('of one pipeline are rejected after the end of the transaction', async () => {
    const over = await transaction(fresh.db, async (trx) => trx.raw('select 1').then(() => trx));
    await expect(runPipelined(over, [[rename, 'a', 'late']])).rejects.toBeInstanceOf(Fault);
  });

  test('of one pipeline reject with the first error, not with those that follow from it, and are rolled back', async () => {
    const work = transaction(fresh.db, (trx) =>
      runPipelined(trx, [
        [rename, 'b', 'first of several'],
        [fails, 0],
        [rename, 'b', 'last of several'],
      ]),
    );
    await expect(work).rejects.toMatchObject({ code: '22012' });
    expect(await named('b')).toBe('before');
  });

  test('can be rolled back to a savepoint, and the transaction continues', async () => {
    await transaction(fresh.db, async (trx) => {
      await trx.raw('savepoint here');
      await expect(runPrepared(trx, fails, [0])).rejects.toMatchObject({ code: '22012' });
      await trx.raw('rollback to savepoint here');
      await runPrepared(trx, rename, ['b', 'went on']);
    });
    expect(await named('b')).toBe('went on');
  });

  test('the first one and BEGIN are sent by one system call', async () => {
    const written: number[] = [];
    await withDatabase({ url: fresh.url, poolMax: 1 }, async (db) => {
      await db.query(select);
      await transaction(db, async (trx) => {
        const write = vi.spyOn(Socket.prototype, '_writev');
        await runPrepared(trx, rename, ['b', 'by one call']);
        written.push(write.mock.calls.length);
        write.mockRestore();
      });
    });
    expect(written).toEqual([1]);
  });

  test('after a lost connection the transaction rejects with the error of its work, not with that of ROLLBACK', async () => {
    const failure = new Error('no');
    const work = transaction(fresh.db, async (trx) => {
      await trx.raw(suicide).catch(() => undefined);
      throw failure;
    });
    await expect(work).rejects.toBe(failure);
  });
});

describe('an error of a statement is not a fault', () => {
  test('a violated constraint rejects with the error of pg, without the values of the statement', async () => {
    const insert = fresh.db.knex('tenants').insert({ id: 'a', name: 'sesame' });
    const error: unknown = await insert.catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: '23505', constraint: 'tenants_pkey' });
    expect(error).not.toBeInstanceOf(Fault);
    expect(String(error)).not.toContain('sesame');
  });

  test('bigint is decoded as an exact number, or is an error', async () => {
    expect(await fresh.db.query({ text: 'select 9007199254740991::bigint as n' })).toEqual([
      { n: Number.MAX_SAFE_INTEGER },
    ]);
    await expect(fresh.db.query({ text: 'select 9007199254740993::bigint as n' })).rejects.toThrow('too large');
  });
});

describe('a transaction', () => {
  test('runs again after a deadlock, so that both transactions commit', async () => {
    let entered = 0;
    const both = Promise.withResolvers<void>();
    const change = (first: string, second: string) =>
      transaction(fresh.db, async (trx) => {
        await trx.raw("set local deadlock_timeout = '20ms'");
        await trx.raw('update tenants set name = ? where id = ?', ['x', first]);
        if (++entered === 2) {
          both.resolve();
        }
        await both.promise;
        await trx.raw('update tenants set name = ? where id = ?', ['x', second]);
      });
    await Promise.all([change('a', 'b'), change('b', 'a')]);
    expect(entered).toBe(3);
  });

  test('rejects with the error of its work, and is rolled back', async () => {
    const failure = new Error('no');
    const work = transaction(fresh.db, async (trx) => {
      await trx.raw(`insert into tenants (id, name) values ('c', 'c')`);
      throw failure;
    });
    await expect(work).rejects.toBe(failure);
    expect(await fresh.db.knex('tenants').where({ id: 'c' })).toEqual([]);
  });

  test('rejects statements after its end, also while its connection is in another use', () =>
    withDatabase({ url: fresh.url, poolMax: 1 }, async (db) => {
      const over = await transaction(db, async (trx) => trx.raw('select 1').then(() => trx));
      await transaction(db, async () => {
        await expect(over.raw(`update tenants set name = 'x' where id = 'a'`)).rejects.toBeInstanceOf(Fault);
        await expect(runPrepared(over, { name: 'late', text: 'select 1' }, [])).rejects.toBeInstanceOf(Fault);
      });
    }));

  test('rejects statements while its COMMIT runs', async () => {
    const late = Promise.withResolvers<unknown>();
    await transaction(fresh.db, async (trx) => {
      await trx.raw(`update tenants set name = 'kept' where id = 'a'`);
      setImmediate(() =>
        late.resolve(trx.raw(`update tenants set name = 'late' where id = 'a'`).catch((error: unknown) => error)),
      );
    });
    expect(await late.promise).toBeInstanceOf(Fault);
    expect((await fresh.db.knex('tenants').where({ id: 'a' }).first('name'))?.name).toBe('kept');
  });

  test('without statements sends nothing to the database', () =>
    withDatabase({ url: fresh.url, poolMax: 1 }, async (db) => {
      const [own] = await db.query({ text: 'select pg_backend_pid() as pid' });
      expect(await transaction(db, () => Promise.resolve('nothing'))).toBe('nothing');
      const last = { text: 'select query from pg_stat_activity where pid = $1', values: [own?.['pid']] };
      expect(await fresh.db.query(last)).toEqual([{ query: 'select pg_backend_pid() as pid' }]);
    }));
});

test('closing ends every connection, also that of a transaction that was never ended', async () => {
  const db = openDatabase({ url: fresh.url });
  const forgotten = await db.knex.transaction();
  const held: { rows: { pid: number }[] } = await forgotten.raw('select pg_backend_pid() as pid');
  const [free] = await db.query({ text: 'select pg_backend_pid() as pid' });
  await db.close();
  const alive = {
    text: 'select pid from pg_stat_activity where pid = any($1)',
    values: [[held.rows[0]?.pid, free?.['pid']]],
  };
  await expect.poll(() => fresh.db.query(alive)).toEqual([]);
  await expect(db.query(select)).rejects.toBeInstanceOf(Fault);
});
