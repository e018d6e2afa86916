import { parseTenantId, type TenantId } from '../domain/ids.ts';
import { type Arguments, UsageError } from './arguments.ts';

/** `--tenant`; undefined when it is not given. @throws UsageError for what cannot be a tenant's id */
export function tenantOption(args: Arguments): TenantId | undefined {
  const text = args.value('tenant');
  if (text === undefined) return undefined;
  const tenant = parseTenantId(text);
  if (tenant === undefined)
    throw new UsageError(`--tenant ${text} is not a tenant id. A tenant id has lowercase letters, digits and hyphens.`);
  return tenant;
}
