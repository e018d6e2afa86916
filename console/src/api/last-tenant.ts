/** The tenant in which a platform administrator acted last in this browser, kept for each user. An id is no secret. */

import { type Me, ProblemError } from '../../../client/index.ts';
import { client } from './client.ts';
import { queries } from './queries.ts';
import { meQuery } from './session.ts';

const PREFIX = 'postern.tenant.';

export function keepTenant({ id, tenant_id: own }: Me, tenant: string): void {
  if (tenant === own) localStorage.removeItem(PREFIX + id);
  else localStorage.setItem(PREFIX + id, tenant);
}

/**
 * Returns the tenant in which a user that has just signed in acts first; undefined: its own. A tenant that no longer
 * exists, or that the user may no longer read, is forgotten.
 */
export async function lastTenant(): Promise<string | undefined> {
  const me = await queries.ensureQueryData(meQuery);
  const kept = localStorage.getItem(PREFIX + me.id);
  if (kept === null || !me.platform_admin) return undefined;
  try {
    await queries.fetchQuery({
      queryKey: [kept, 'tenant'],
      queryFn: ({ signal }) => client.tenants.get(kept, { signal }),
    });
    return kept;
  } catch (error) {
    if (error instanceof ProblemError && error.status < 500) localStorage.removeItem(PREFIX + me.id);
    return undefined;
  }
}
