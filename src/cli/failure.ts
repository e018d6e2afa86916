/** What went wrong, in one sentence for the person at the terminal. */

import { Fault, Refusal } from '../domain/errors.ts';

export function failure(error: unknown): string {
  if (error instanceof Refusal) {
    const fields = error.extras.errors?.map(({ path, message }) => `${path}: ${message}`).join(' ') ?? '';
    return fields === '' ? error.message : `${error.message} ${fields}`;
  }
  if (error instanceof Fault) {
    const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
    return `The database did not answer: ${error.message}${cause}. Check database.url and that PostgreSQL runs.`;
  }
  return error instanceof Error ? error.message : String(error);
}
