import type { SearchText } from '../../api/search-text.ts';
import { flag, type Given, oneOf, searched } from '../../shell/search.ts';

export const ROLES_KINDS = ['builtin', 'own'] as const;

export interface RolesSearch {
  readonly q?: SearchText;
  /** Only those with a notice. */
  readonly notices?: true;
  readonly kind?: (typeof ROLES_KINDS)[number];
}

export function rolesSearch(given: Given): RolesSearch {
  return { ...searched(given), ...flag(given, 'notices'), ...oneOf(given, 'kind', ROLES_KINDS) };
}
