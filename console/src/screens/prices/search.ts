import type { SearchText } from '../../api/search-text.ts';
import { flag, type Given, oneOf, searched, text } from '../../shell/search.ts';

export interface PricesSearch {
  readonly q?: SearchText;
  /** The price whose drawer is open, by its models. */
  readonly edit?: string;
  /** True: the drawer of a new price is open. */
  readonly add?: true;
  /** The model of the new price. */
  readonly model?: string;
}

export function pricesSearch(given: Given): PricesSearch {
  return { ...searched(given), ...text(given, 'edit'), ...flag(given, 'add'), ...text(given, 'model') };
}

export const PROPOSAL_SHOWN = ['new', 'all'] as const;

export interface ImportSearch {
  readonly q?: SearchText;
  readonly provider?: string;
  readonly show?: (typeof PROPOSAL_SHOWN)[number];
}

export function importSearch(given: Given): ImportSearch {
  return { ...searched(given), ...text(given, 'provider'), ...oneOf(given, 'show', PROPOSAL_SHOWN) };
}
