import type { SearchText } from '../../api/search-text.ts';
import { type Given, oneOf, searched } from '../../shell/search.ts';

export const BUDGETS_STATES = ['enabled', 'disabled'] as const;

export interface BudgetsSearch {
  readonly q?: SearchText;
  readonly state?: (typeof BUDGETS_STATES)[number];
}

export function budgetsSearch(given: Given): BudgetsSearch {
  return { ...searched(given), ...oneOf(given, 'state', BUDGETS_STATES) };
}
