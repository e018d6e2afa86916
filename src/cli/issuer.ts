/** `postern issuer`: the issuers of all tenants, for the operator. */

import { issuerOfName, refreshAsOperator, revokeBeforeAsOperator } from '../iam/issuers/as-operator.ts';
import { listIssuers, type StoredIssuer } from '../iam/issuers/queries.ts';
import { issuerResource } from '../iam/issuers/read.ts';
import { keyRefreshTurns } from '../iam/issuers/refresh-keys.ts';
import { testToken } from '../iam/issuers/test.ts';
import { printable } from './apply-plan.ts';
import { type Arguments, tenantOption, timeOption, wordsOf } from './arguments.ts';
import type { LoadedConfig } from './configuration.ts';
import { printed } from './output.ts';
import { readPassword } from './terminal.ts';
import { type OperatorParts, printList, scopeOption, withStore } from './with-store.ts';

interface IssuerParts extends OperatorParts, Pick<LoadedConfig, 'config'> {
  readonly name: string;
}

/** Runs a command on the issuer that it names. */
async function withIssuer(
  args: Arguments,
  work: (parts: IssuerParts, issuer: Awaited<ReturnType<typeof issuerOfName>>) => Promise<number>,
): Promise<number> {
  const [name] = wordsOf(args, 'Give the name of exactly one issuer.');
  const tenant = tenantOption(args);
  return withStore(args, async ({ db }, { config }, parts) =>
    work({ ...parts, config, name }, await issuerOfName(db.knex, name, tenant)),
  );
}

/** Prints one line for each issuer: tenant and name, kind, value of `iss`, and the state of its keys. */
export async function issuerListCommand(args: Arguments): Promise<number> {
  await withStore(args, async ({ db }, { config }, { now }) => {
    const scope = await scopeOption(args, db.knex);
    await printList(
      (page) => listIssuers(db.knex, scope, {}, page),
      ({ name, tenant_id }) => [name, tenant_id],
      (rows) => rows.map((row) => lineOf(row, config, now())),
    );
  });
  return 0;
}

function lineOf(row: StoredIssuer, { issuers }: LoadedConfig['config'], nowMs: number): string {
  const { keys } = issuerResource(row, issuers, nowMs);
  const age = keys.fetched_at === null ? 'never fetched' : keys.fetched_at.toISOString();
  const state = [
    `${keys.count} ${keys.pasted ? 'pasted ' : ''}${keys.count === 1 ? 'key' : 'keys'} of ${age}`,
    ...(keys.stale ? ['too old to be used'] : []),
    ...(keys.error === null ? [] : [`error: ${keys.error}`]),
    ...(row.enabled ? [] : ['disabled']),
  ];
  return `${row.tenant_id}/${row.name}  ${row.kind}  ${printable(row.issuer)}  ${printable(state.join('; '))}\n`;
}

/** Prints each step of the examination of a token. The exit code is 0 if the token would be accepted, otherwise 1. */
export function issuerTestCommand(args: Arguments): Promise<number> {
  return withIssuer(args, async ({ db, now, config, name }, issuer) => {
    // Neither the list of processes nor the history of a shell shows it.
    const token = (await readPassword(process.stdin, process.stderr, `Token of ${name}: `)).trim();
    const tested = await testToken(db.knex, config.issuers, issuer.tenant_id, issuer.id, token, now());
    if (tested === undefined) throw new Error('The issuer was deleted. Nothing was tested.');
    for (const { step, outcome, detail } of tested.steps) {
      process.stdout.write(`${outcome.padEnd(8)}${step.padEnd(17)}${printable(detail)}\n`);
    }
    return tested.accepted ? 0 : 1;
  });
}

/** Fetches the keys of an issuer. The exit code is 0 if that succeeded, otherwise 1. */
export function issuerRefreshCommand(args: Arguments): Promise<number> {
  return withIssuer(args, async ({ db, config, name }, issuer) => {
    const { allowedHosts, maxStalenessMs } = config.issuers;
    const keys = { db, fetch: { allowedHosts }, maxStalenessMs, turns: keyRefreshTurns() };
    const outcome = await refreshAsOperator(keys, issuer);
    if (outcome.kind === 'ok') return printed(`Fetched: ${outcome.keys.length} keys of ${name}.\n`);
    process.stderr.write(`${printable(outcome.reason)}\n`);
    return 1;
  });
}

/** Refuses older tokens. Running servers apply the change within a second. */
export function issuerRevokeBeforeCommand(args: Arguments): Promise<number> {
  return withIssuer(args, async ({ name, ...parts }, issuer) => {
    const before = await revokeBeforeAsOperator(parts, issuer, timeOption(args));
    return printed(
      `Tokens of ${name} that were issued before ${before.toISOString()} are refused. The sessions that began with its tokens have ended.\n`,
    );
  });
}
