/** Spans of statements. They name operation and table. Text and values of a statement never leave the process. */

import type { Tracing } from '../telemetry/tracing.ts';

const OPERATION = /^\s*([a-z]+)/i;
const TABLE = /\b(?:from|into|update|table)\s+"?([a-z_][a-z0-9_]*)/i;

/** Returns a callback that ends the statement's span and calls `done`, or `done` itself outside of a span. */
export function tracedStatement<Args extends readonly unknown[]>(
  tracing: Tracing,
  { text, name }: { readonly text: string; readonly name?: string | undefined },
  done: (error: Error | null, ...rest: Args) => void,
): (error: Error | null, ...rest: Args) => void {
  const span = tracing.child(name ?? summaryOf(text), 'client', {
    'db.system.name': 'postgresql',
    'db.operation.name': operationOf(text),
  });
  if (span === undefined) return done;
  return (error, ...rest) => {
    span.end(error ?? undefined);
    done(error, ...rest);
  };
}

function operationOf(text: string): string {
  return OPERATION.exec(text)?.[1]?.toUpperCase() ?? 'SQL';
}

function summaryOf(text: string): string {
  const table = TABLE.exec(text)?.[1];
  return table === undefined ? operationOf(text) : `${operationOf(text)} ${table}`;
}
