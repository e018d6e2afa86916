import type { SearchText } from '../../api/search-text.ts';
import { type Given, oneOf, searched, text } from '../../shell/search.ts';

export const AUDIT_RESULTS = ['success', 'failure', 'refused'] as const;

export interface AuditSearch {
  /** A name or an address that rows show, or a whole id. */
  readonly q?: SearchText;
  readonly actor?: string;
  readonly action?: string;
  readonly target?: string;
  readonly result?: (typeof AUDIT_RESULTS)[number];
  readonly from?: string;
  readonly to?: string;
  readonly request_id?: string;
  readonly open?: string;
}

export function auditSearch(given: Given): AuditSearch {
  return {
    ...searched(given),
    ...text(given, 'actor'),
    ...text(given, 'action'),
    ...text(given, 'target'),
    ...oneOf(given, 'result', AUDIT_RESULTS),
    ...text(given, 'from'),
    ...text(given, 'to'),
    ...text(given, 'request_id'),
    ...text(given, 'open'),
  };
}
