import type { SearchText } from '../../api/search-text.ts';
import { type Given, oneOf, searched } from '../../shell/search.ts';

export const ROLES_KINDS = ['builtin', 'own'] as const;

export interface RolesSearch {
  readonly q?: SearchText;
  readonly kind?: (typeof ROLES_KINDS)[number];
}

export function rolesSearch(given: Given): RolesSearch {
  return { ...searched(given), ...oneOf(given, 'kind', ROLES_KINDS) };
}
