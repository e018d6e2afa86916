import { disablePolicy } from '../admin/policies/disable.ts';
import { parseTenantId, type TenantId } from '../domain/ids.ts';
import { type Arguments, UsageError } from './arguments.ts';
import { withStore } from './with-store.ts';

/** Switches off the policy that locked its author out; running servers follow within a second. */
export async function disablePolicyCommand(args: Arguments): Promise<number> {
  const [name, ...rest] = args.words;
  if (name === undefined || rest.length > 0) throw new UsageError('Give the name of one policy.');
  const tenant = tenantOf(args.value('tenant'));
  const owner = await withStore(args, ({ db }) =>
    // There is no cache in this process that would have to follow.
    disablePolicy({ db, feed: { catchUp: async () => undefined }, flush: () => undefined }, name, tenant),
  );
  process.stdout.write(`Disabled: ${name}, ${owner === undefined ? 'a global policy' : `of the tenant ${owner}`}.\n`);
  return 0;
}

function tenantOf(text: string | undefined): TenantId | undefined {
  if (text === undefined) return undefined;
  const tenant = parseTenantId(text);
  if (tenant === undefined) throw new UsageError(`--tenant ${text} is not a tenant id: lower-case letters, digits and dashes.`);
  return tenant;
}
