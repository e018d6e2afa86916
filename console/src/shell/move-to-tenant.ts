import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect } from 'react';

/**
 * Goes to a tenant, with the same address otherwise: to the caller's own if the address names none, or to the tenant of
 * the open user or key. Every link keeps the tenant of the address, so it opens the same for another administrator.
 *
 * @param wanted undefined: not known yet
 * @returns whether the page is about to change
 */
export function useMoveToTenant(wanted: string | undefined): boolean {
  const { tenant: named } = useSearch({ strict: false });
  const navigate = useNavigate();
  const isElsewhere = wanted !== undefined && wanted !== named;
  useEffect(() => {
    if (!isElsewhere) return;
    const search = (before: object): object => ({ ...before, tenant: wanted });
    void navigate({ to: '.', search, hash: true, replace: true, resetScroll: false, ignoreBlocker: true });
  }, [isElsewhere, navigate, wanted]);
  return isElsewhere;
}
