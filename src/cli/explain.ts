/** `postern explain`: explains an allow or a denial with the server's decision function, on the same database. */

import { present } from '../domain/objects.ts';
import { validatorOf } from '../http/validation.ts';
import { explain } from '../iam/explain/explain.ts';
import { clientAddressProblem } from '../iam/explain/resolve.ts';
import { type ExplainRequest, explainRequest } from '../iam/explain/schemas.ts';
import { startCredentialCache } from '../server/credential-cache.ts';
import { meteringSettings } from '../server/limits.ts';
import { createTelemetry } from '../telemetry/telemetry.ts';
import { type Arguments, timeOption, UsageError } from './arguments.ts';
import { withStore } from './with-store.ts';

/** Prints the explanation as JSON. The exit code is 0 for an allow, 1 for a denial. */
export async function explainCommand(args: Arguments): Promise<number> {
  const request = requestOf(args);
  const explanation = await withStore(args, async (store, { config }) => {
    await using stack = new AsyncDisposableStack();
    const { live, routes, prices, now } = await startCredentialCache(
      { config, store, telemetry: createTelemetry({ level: 'silent' }) },
      stack,
    );
    const parts = {
      db: store.db,
      live,
      routes,
      metering: meteringSettings(config),
      priceTable: () => prices.table,
    };
    return await explain(parts, { kind: 'operator', nowMs: now() }, request);
  });
  process.stdout.write(`${JSON.stringify(explanation, undefined, 2)}\n`);
  return explanation.status === 200 ? 0 : 1;
}

const validate = validatorOf(explainRequest);
/** The options that have another name than their member of the API. */
const OPTION_OF: Readonly<Record<string, string>> = {
  tenant_id: 'tenant',
  client_ip: 'ip',
  content_type: 'content-type',
};

/** @throws UsageError for a request that the API would not accept */
function requestOf(args: Arguments): ExplainRequest {
  const method = args.value('method');
  const path = args.value('path');
  if (method === undefined || path === undefined) throw new UsageError('Give both --method and --path.');
  const subject = args.value('subject');
  // The list of processes does not show a credential in the environment.
  const credential =
    args.value('credential') ?? (subject === undefined ? process.env['POSTERN_CREDENTIAL'] : undefined);
  if (subject !== undefined && credential !== undefined)
    throw new UsageError('Give --subject or --credential, not both.');
  const given = {
    subject,
    credential,
    tenant_id: args.value('tenant'),
    client_ip: args.value('ip'),
    time: timeOption(args),
    body: args.value('body'),
    content_type: args.value('content-type'),
  };
  const problem = clientAddressProblem(given.client_ip);
  if (problem !== undefined) throw new UsageError(`--ip: ${problem}`);
  const checked = validate({ method, path, ...present(given) }, false);
  if (checked.kind === 'valid') return checked.value;
  const [{ path: at, message } = { path: '', message: 'The request is not valid.' }] = checked.errors;
  const member = at.slice(1);
  throw new UsageError(`--${OPTION_OF[member] ?? member}: ${message}`);
}
