import { Refusal } from '../../domain/errors.ts';

/**
 * Reads an instant of a query, in milliseconds since the epoch.
 * @throws Refusal `invalid_parameter` for an instant that does not exist
 */
export function instantIn(param: 'from' | 'to', text: string): number {
  const ms = Date.parse(text);
  if (Number.isNaN(ms))
    throw new Refusal('invalid_parameter', `${param} must be an RFC 3339 time, such as 2026-11-30T12:00:00Z.`, {
      param,
    });
  return ms;
}
