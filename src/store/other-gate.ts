/** Requests that another gate denied, as Envoy's access log reports them. */

/** The name in `meta` of the time of the last report, to the minute. */
export const OTHER_GATE_REPORTED_AT = 'other_gate_reported_at';
