import { RESOURCE_KINDS } from '../../api/permissions.ts';
import { type Given, oneOf, text } from '../../shell/search.ts';

export interface AccessSearch {
  /** Default: models. */
  readonly kind?: (typeof RESOURCE_KINDS)[number];
  readonly name?: string;
  readonly permission?: string;
}

export function accessSearch(given: Given): AccessSearch {
  return { ...oneOf(given, 'kind', RESOURCE_KINDS), ...text(given, 'name'), ...text(given, 'permission') };
}
