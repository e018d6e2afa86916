/**
 * Statements of one connection that are sent without waiting for each other. The server does them one after the other, each seeing what
 * those before it did. Resolves when all are done; when some fail, with the error of the first, for which the others failed in a
 * transaction.
 */
export async function sentTogether<T extends readonly unknown[]>(
  statements: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(statements);
  return Promise.all(statements);
}
