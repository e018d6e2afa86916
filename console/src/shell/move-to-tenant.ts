import { useNavigate } from '@tanstack/react-router';
import { useEffect } from 'react';
import { useTenant } from '../api/session.ts';

/**
 * Goes to the tenant of the open user or key, with the same address otherwise. A link that a tenant's own user shares
 * names no tenant. Without one, a platform administrator finds users and keys of all tenants by their ids.
 *
 * @param wanted undefined: not known yet
 * @returns whether the page is about to change
 */
export function useMoveToTenant(wanted: string | undefined): boolean {
  const { id } = useTenant();
  const navigate = useNavigate();
  const isElsewhere = wanted !== undefined && wanted !== id;
  useEffect(() => {
    if (isElsewhere) void navigate({ to: '.', search: (before) => ({ ...before, tenant: wanted }), replace: true });
  }, [isElsewhere, navigate, wanted]);
  return isElsewhere;
}
