import pg from 'pg';
import { expect, test } from 'vitest';
import { Fault } from '../../src/domain/errors.ts';
import { statementError } from '../../src/store/faults.ts';
import { firstRow } from '../../src/store/metering/statement.ts';

/** Fails as often with the SQLSTATE, as a pool does, and then answers. */
function failing(state: string, times: number) {
  let sent = 0;
  const query = () => {
    sent += 1;
    if (sent > times) return Promise.resolve([{ answer: sent }]);
    const error = new pg.DatabaseError('the statement failed', 0, 'error');
    error.code = state;
    return Promise.reject(statementError(error));
  };
  return { query, sent: () => sent };
}

const STATEMENT = { text: 'select 1 as answer' };

test.each([
  ['a serialization failure', '40001'],
  ['a deadlock', '40P01'],
  ['a lock that another statement kept', '55P03'],
])('after %s, the statement is sent again', async (_, state) => {
  expect(await firstRow(failing(state, 2), STATEMENT)).toEqual({ answer: 3 });
});

test('a lock that is never released is a fault after three attempts', async () => {
  const db = failing('55P03', 5);
  await expect(firstRow(db, STATEMENT)).rejects.toThrow(Fault);
  expect(db.sent()).toBe(3);
});

test('a database that cannot serve is a fault at once', async () => {
  const db = failing('57014', 5);
  await expect(firstRow(db, STATEMENT)).rejects.toThrow(Fault);
  expect(db.sent()).toBe(1);
});
