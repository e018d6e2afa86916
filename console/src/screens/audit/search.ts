import { type Given, oneOf, text } from '../../shell/search.ts';

export const AUDIT_RESULTS = ['success', 'failure', 'refused'] as const;

export interface AuditSearch {
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
