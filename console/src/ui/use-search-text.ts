import { type SearchText, searchOf } from '../api/search-text.ts';
import { useLate } from './use-late.ts';

/** The search that a typed text requests, once the typing pauses. */
export function useSearchText(typed: string): SearchText {
  return useLate(searchOf(typed));
}
