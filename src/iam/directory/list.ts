/** Lists the configured directories for the administrator of the platform. */

import type { DirectoryService } from '../auth/directory-service.ts';
import { authorize } from '../caller/authorize.ts';
import type { Caller } from '../caller/caller.ts';

interface ConfiguredDirectory {
  readonly name: string;
  readonly status: 'up' | 'down' | 'unknown';
}

/**
 * @param service undefined = no directory is configured
 * @throws Refusal `insufficient_permission` unless the caller is a platform administrator
 */
export function listDirectories(
  service: DirectoryService | undefined,
  caller: Caller,
): { readonly directories: readonly ConfiguredDirectory[] } {
  authorize(caller, 'admin:tenants');
  return { directories: (service?.names ?? []).map((name) => ({ name, status: statusOf(service?.isUp(name)) })) };
}

function statusOf(isUp: boolean | undefined): ConfiguredDirectory['status'] {
  if (isUp === undefined) return 'unknown';
  return isUp ? 'up' : 'down';
}
