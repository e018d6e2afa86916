import { disablePolicy } from '../iam/policies/write.ts';
import { type Arguments, tenantOption, wordsOf } from './arguments.ts';
import { printed } from './output.ts';
import { NO_CACHE, withStore } from './with-store.ts';

/** Disables a policy, for example one that locked its author out. Running servers apply the change within a second. */
export async function disablePolicyCommand(args: Arguments): Promise<number> {
  const [name] = wordsOf(args, 'Give the name of exactly one policy.');
  const tenant = tenantOption(args);
  const owner = await withStore(args, ({ db }) => disablePolicy({ db, ...NO_CACHE }, name, tenant));
  return printed(`Disabled: ${name}, ${owner === null ? 'a global policy' : `a policy of the tenant ${owner}`}.\n`);
}
