import { type Given, oneOf, text } from '../../shell/search.ts';

export const ROLES_KINDS = ['builtin', 'own'] as const;

export interface RolesSearch {
  readonly q?: string;
  readonly kind?: (typeof ROLES_KINDS)[number];
}

export function rolesSearch(given: Given): RolesSearch {
  return { ...text(given, 'q'), ...oneOf(given, 'kind', ROLES_KINDS) };
}
