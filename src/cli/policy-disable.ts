import { disablePolicy } from '../iam/policies/disable.ts';
import { type Arguments, UsageError } from './arguments.ts';
import { tenantOption } from './tenant-option.ts';
import { withStore } from './with-store.ts';

/** Switches off the policy that locked its author out; running servers follow within a second. */
export async function disablePolicyCommand(args: Arguments): Promise<number> {
  const [name, ...rest] = args.words;
  if (name === undefined || rest.length > 0) throw new UsageError('Give the name of exactly one policy.');
  const tenant = tenantOption(args);
  const owner = await withStore(args, ({ db }) =>
    // There is no cache in this process that would have to follow.
    disablePolicy({ db, feed: { catchUp: async () => undefined }, flush: () => undefined }, name, tenant),
  );
  process.stdout.write(
    `Disabled: ${name}, ${owner === undefined ? 'a global policy' : `a policy of the tenant ${owner}`}.\n`,
  );
  return 0;
}
