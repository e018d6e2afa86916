/**
 * The catalog of metrics. A metric is one entry here; `npm run docs` writes the tables of docs/metrics.md from it.
 * The process that counts gives the values with `Metrics.show`.
 */

export interface MetricDefinition {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  readonly help: string;
  /** The aggregate over several workers. Default: the sum. */
  readonly together?: 'max' | 'min';
  /** Facts that the documentation adds to `help`, in Markdown: values of labels, bounds, advice. */
  readonly explanation?: string;
  /** The table in the documentation. Default: `server`. */
  readonly table?: 'directory' | 'limits';
}

type Extra = Pick<MetricDefinition, 'together' | 'explanation'>;

/** Returns the functions that make the definitions of one table. */
const definitionsOf = (table: Pick<MetricDefinition, 'table'> = {}) => ({
  counter: <const L extends readonly string[]>(labels: L, help: string, extra: Extra = {}) =>
    ({ type: 'counter', labels, help, ...extra, ...table }) as const,
  gauge: <const L extends readonly string[]>(labels: L, help: string, extra: Extra = {}) =>
    ({ type: 'gauge', labels, help, ...extra, ...table }) as const,
  histogram: (help: string, extra: Extra = {}) =>
    ({ type: 'histogram', labels: [], help, ...extra, ...table }) as const,
});
const { counter, gauge, histogram } = definitionsOf();
const limits = definitionsOf({ table: 'limits' });
const directory = definitionsOf({ table: 'directory' });

export const METRICS = {
  postern_build_info: gauge(['version', 'node'], '1, with the versions of Postern and Node as labels.', {
    together: 'max',
  }),
  postern_checks_total: counter(['outcome', 'code'], 'Checks by outcome and code.'),
  postern_route_checks_total: counter(['method', 'route', 'outcome'], 'Decided checks by route and outcome.'),
  postern_bodies_not_sent_total: counter(
    ['method', 'route', 'setting'],
    "Checks of a route that reads the body, for which Envoy sent no body because Envoy's configuration lacks the setting for the route.",
    {
      explanation: "The answer is 503 `unavailable`. See [Envoy's configuration](envoy.md#printing-the-configuration).",
    },
  ),
  postern_policy_reports_total: counter(['effect'], 'Checks whose outcome a report-only policy would have changed.', {
    explanation:
      '`effect` of the policy: `deny` counts requests that were allowed, `allow` requests that were denied. [Recent decisions](operations.md#recent-decisions) name the policies.',
  }),
  postern_check_duration_seconds: histogram('Time to answer a check.'),
  postern_processes_ready: gauge(['process'], 'Processes of this server that are ready.'),
  postern_process_restarts_total: counter(['process'], 'Processes that exited unexpectedly and were replaced.'),
  postern_local_apply_timeouts_total: counter(
    [],
    'Writes that were answered before every gate worker of this server applied them.',
  ),
  postern_grpc_calls: gauge(['kind'], 'Open calls with one message.', {
    explanation:
      '`open`: all of them. `unfinished_message`: those whose message is incomplete. See the [bounds](security.md#cost-bounds).',
  }),
  postern_grpc_unfinished_bytes: gauge([], 'Memory of partly received messages.'),
  postern_grpc_calls_ended_total: counter(['reason'], 'Calls that ended before their answer was delivered.', {
    explanation:
      '`refused`: unfinished messages held too much memory. `expired`: the deadline passed. `cancelled`: the peer reset the call or lost its connection. `shed`: the peer resets too many calls, or has too many open.',
  }),
  postern_grpc_connections_ended_total: counter(
    ['reason'],
    'Connections to the gRPC listener that the server closed.',
    {
      explanation:
        '`peer`: the peer exceeded a [bound](security.md#cost-bounds), violated the protocol or was silent. `fault`: an exception in the server; report it. 0 with `grpc.transport: grpc-js`.',
    },
  ),
  postern_grpc_tls_reloads_total: counter(['outcome'], 'TLS files that changed on disk, by outcome.', {
    explanation: '`taken` (loaded) or `refused`. Alert on `refused`. See [TLS files](operations.md#tls-files).',
  }),
  postern_logins_total: counter(['outcome'], 'Logins by outcome.', {
    explanation: '`success`, `failure`, `refused` or `throttled`.',
  }),
  postern_http_requests_total: counter(['method', 'route', 'status'], 'Requests to the HTTP API by route and status.', {
    explanation:
      '`route` is the template, such as `/v1/iam/users/:id`; `none` if no route matches. Requests that are not HTTP do not count.',
  }),
  postern_http_request_seconds_total: counter(['method', 'route'], 'Time spent on requests to the HTTP API by route.'),
  postern_http_request_duration_seconds: histogram('Time to answer a request to the HTTP API.', {
    explanation: 'From the headers of the request to the end of its answer. An export counts with its whole duration.',
  }),
  postern_http_refusals_total: counter(['code'], 'Requests to the HTTP API that were answered 401 or 403, by code.', {
    explanation: 'A [sample](api.md#rejected-requests) of them is in the audit log.',
  }),
  postern_http_aborted_uploads_total: counter([], 'API requests whose client disconnected before they were complete.', {
    explanation: 'A request that is not complete within 30 s counts as well.',
  }),
  postern_cache_entries: gauge(['cache', 'kind'], 'Entries of the credential cache.', {
    explanation: '`present`, `absent` (known not to exist) or `tombstone`.',
  }),
  postern_cache_lookups_total: counter(['cache', 'result'], 'Lookups in the credential cache.', {
    explanation: '`hit` or `miss`.',
  }),
  postern_cache_in_flight: gauge(['kind'], 'Work that the credential cache has in progress.', {
    explanation: '`fill` (loads), `verification` (of signatures), and checks that are `waiting`.',
  }),
  postern_cache_refused_landings_total: counter(
    ['cache'],
    'Loads that were discarded because the data changed while they ran.',
  ),
  postern_cache_loads: gauge(['class', 'state'], 'Loads of the credential cache that are running or waiting.', {
    explanation:
      'Classes: `rules` (tenants, global policies), `known` (users, sessions, keys that were valid here before), `unseen` (other keys), `known_token` and `unseen_token` (signatures), `known_issuer_token` and `unseen_issuer_token` (signatures of other issuers), `admission` (users of issuers that are created or given roles). If many loads wait in `unseen` classes only, a client sends made-up credentials.',
  }),
  postern_cache_rejected_loads_total: counter(
    ['class', 'reason'],
    'Loads of the credential cache that were rejected before they started.',
    { explanation: '`too_many_wait` (a 503 each), or `no_longer_awaited` (no check waited for the load any longer).' },
  ),
  postern_cache_rejected_resolutions_total: counter(
    ['class'],
    'Requests answered with a fault because too many requests waited for the cache.',
    { explanation: 'The class of the credential is `known` or `unseen`.' },
  ),
  postern_cache_rules_bytes: gauge([], 'Estimated memory of compiled roles and policies.', {
    explanation: 'The bound is 1,280 bytes for each of `cache.credentials`, and at least 64 MiB.',
  }),
  postern_database_connections: gauge(['state'], 'Connections to the database by state; max: the sum of the bounds.', {
    explanation: '`used`, `idle` and `max`, for all pools together.',
  }),
  postern_database_waiting: gauge([], 'Callers that wait for a connection to the database.'),
  postern_database_statements_total: counter(['outcome'], 'Database statements by outcome.', {
    explanation:
      '`success`, `error` (PostgreSQL rejected the statement, for example for a duplicate) or `fault` (no answer in time, no connection, a lock).',
  }),
  postern_database_statement_duration_seconds: histogram('Time from sending a database statement to its answer.'),
  postern_database_down: gauge([], '1 while the database does not answer.', {
    together: 'max',
    explanation: 'From the first unanswered read of the change feed until the database answers again.',
  }),
  postern_signing_key_age_seconds: gauge([], 'Time since the current signing key started to sign.', {
    together: 'max',
    explanation: 'The key is replaced after 30 days.',
  }),
  postern_grpc_certificate_expiry_timestamp_seconds: gauge(
    [],
    'Expiry of the certificate of the gRPC listener, in seconds since the epoch.',
    { together: 'min', explanation: 'Absent without TLS.' },
  ),
  postern_audit_seal_age_seconds: gauge([], 'Time since the audit log was last sealed or found sealed.', {
    together: 'max',
  }),
  postern_audit_chain_breaks_total: counter(
    [],
    'Number of times that the chain of the audit log did not continue from its newest seal.',
  ),
  postern_refresh_reuse_total: counter(
    [],
    'Refresh tokens that were used twice. The server ended the session of each.',
  ),
  postern_issuer_key_fetches_total: counter(['outcome'], 'Fetches of the keys of an issuer, by outcome.', {
    explanation: '`success` or `failure`. The log and the issuer name the reason.',
  }),
  postern_issuers: gauge(['keys'], 'Enabled issuers whose keys are fetched, by the state of their keys.', {
    together: 'max',
    explanation:
      '`current`, `failing` (the last fetch failed, the last good keys are in use) or `stale` (never fetched, or older than `issuers.max-staleness`: tokens of these issuers are answered 503). Counted every 15 s. Alert on `failing` that lasts an hour.',
  }),
  postern_webhook_attempts_total: counter(['outcome'], 'Attempts to deliver an event to a webhook, by outcome.', {
    explanation:
      '`delivered`, `retried` (failed, and another attempt follows), `failed` (the last attempt, after 24 h) or `disabled` (the receiver answered 410).',
  }),
  postern_webhook_waiting_deliveries: gauge([], 'Deliveries that wait for their first or next attempt.', {
    together: 'max',
    explanation: 'Counted every 15 s.',
  }),
  postern_webhook_overdue_seconds: gauge([], 'Time for which the first due delivery has waited for its attempt.', {
    together: 'max',
    explanation: 'Counted every 15 s. Alert on more than 300: events are late for another reason than their receivers.',
  }),
  postern_quota_used_ratio: gauge(
    ['tenant'],
    'Fraction of the monthly tokens that is spent or held, for the tenant with the smallest fraction left.',
    {
      together: 'max',
      explanation:
        "Without the tenant's name. With `metrics.tenant-label`: the fractions of the 100 tenants nearest to their quota. They are at most a second old with up to 20,000 tenants in use.",
    },
  ),
  postern_feed_age_seconds: gauge([], 'Time since the change feed was last read.', {
    together: 'max',
    explanation: 'Alert on it long before `cache.max-staleness`.',
  }),
  postern_feed_lag_seconds: histogram('Age of the oldest change of a batch when the batch was applied.'),
  postern_feed_polls_total: counter([], 'Successful reads of the change feed.'),
  postern_feed_errors_total: counter([], 'Failed reads of the change feed.'),
  postern_feed_flushes_total: counter([], 'Number of times that all caches were flushed.'),
  postern_feed_unknown_flushes_total: counter(
    [],
    'Cache flushes because a newer replica wrote a kind of change that this version does not know.',
    {
      explanation:
        'The log names each kind once. Each flush is safe and costs a refill of the cache. Upgrade this server.',
    },
  ),
  postern_decision_counts_dropped_total: counter(
    [],
    'Decisions that /v1/iam/decisions does not show because the buffer was full.',
    {
      explanation:
        'There were too many tenants, routes and codes at once, or the database was unreachable for too long.',
    },
  ),
  postern_shadow_checks_total: counter(['outcome', 'code'], 'Checks in shadow mode by outcome and code.', {
    explanation: 'They count in no other metric of checks. See [Adopt Postern in a week](trial.md).',
  }),
  postern_shadow_decisions_dropped_total: counter(
    [],
    'Decisions in shadow mode that /v1/iam/decisions/recent does not show because they exceeded a bound or could not be written.',
    { explanation: 'See [Bounds of a trial](trial.md#bounds).' },
  ),
  postern_other_gate_denials_dropped_total: counter(
    [],
    "Denials of another gate that Envoy's access log reported and the server did not store.",
    { explanation: 'See [Bounds of a trial](trial.md#bounds).' },
  ),
  postern_recent_denials_dropped_total: counter(
    [],
    "Denials that /v1/iam/decisions/recent does not show because they exceeded their tenant's rate or could not be written.",
    { explanation: 'See [Recent decisions](operations.md#recent-decisions).' },
  ),
  postern_decision_log_dropped_total: counter(
    ['outcome'],
    'Checks without their own line in the decision log: faults over their rate, a full buffer, or a lost batch.',
    { explanation: 'See [the decision log](decision-log.md#what-has-a-line).' },
  ),
  postern_trace_spans_dropped_total: counter(
    [],
    'Spans that were lost because the OpenTelemetry collector did not accept them or the buffer was full.',
    { explanation: 'See [traces](decision-log.md#traces).' },
  ),
  postern_log_dropped_total: counter([], 'Log lines that were dropped because standard output was too slow.'),
  postern_rate_limited_checks_total: limits.counter(['outcome'], 'Checks with a rate limit, by outcome.'),
  postern_rate_waited_total: limits.counter([], 'Checks that waited for a rate lease.'),
  postern_rate_leased_total: limits.counter([], 'Requests leased in advance.'),
  postern_rate_stranded_total: limits.counter([], 'Requests leased in advance and unused when their window ended.'),
  postern_quota_limited_checks_total: limits.counter(['outcome'], 'Checks with a token quota, by outcome.'),
  postern_budget_refused_checks_total: limits.counter([], 'Checks that a budget refused.', {
    explanation:
      'They are also part of `postern_checks_total{code="insufficient_quota"}`. The [decision log](decision-log.md) and [recent decisions](operations.md#recent-decisions) name the budget.',
  }),
  postern_model_limit_refused_checks_total: limits.counter(
    ['level', 'dimension'],
    'Checks that a limit by model refused.',
    {
      explanation:
        '`level`: `tenant`, `user` or `key`. `dimension`: `requests_per_minute`, `tokens_per_minute` or `parallel`.',
    },
  ),
  postern_quota_tokens_total: limits.counter(
    ['outcome'],
    'Tokens leased, and tokens of reservations that were made, settled, expired or released.',
  ),
  postern_reservations_expired_total: limits.counter([], 'Reservations that expired without a settlement.'),
  postern_reservations_renewed_total: limits.counter([], 'Renewals of token reservations.', {
    explanation: 'Envoy renews the reservation of a request that still runs.',
  }),
  postern_reservations_released_total: limits.counter([], 'Reservations of cancelled checks.'),
  postern_reservation_changes_dropped_total: limits.counter(
    [],
    'Renewals and releases that were not written to the database.',
    { explanation: 'These reservations expire.' },
  ),
  postern_lost_requests_booked_total: limits.counter(
    [],
    'Requests of processes that died, booked with the estimate of their prompt.',
    { explanation: 'See [A process that dies](limits.md#the-end-of-a-request).' },
  ),
  postern_requests_not_noted_total: limits.counter(
    [],
    'Requests beyond the number that a process notes in the database while they are under way.',
    { explanation: 'The number is 100,000. If the process dies, the others are not booked.' },
  ),
  postern_collection_checks_total: limits.counter(['outcome'], 'Creations of collections under a limit, by outcome.'),
  postern_settlements_total: limits.counter(['outcome'], 'Finished requests, by what happened to their usage.', {
    explanation: '`booked`, `duplicate` (reported twice), `unknown`, `late` or `dropped`.',
  }),
  postern_settlements_estimated_total: limits.counter([], 'Finished requests without measured usage.'),
  postern_settlements_unknown_charges_total: limits.counter(
    [],
    'Finished requests whose budgets the access log did not return correctly. They are booked without their budgets.',
  ),
  postern_settlement_lag_seconds: limits.gauge([], 'Time from the end of the last booked request to its booking.', {
    together: 'max',
  }),
  postern_access_log_streams: limits.gauge([], 'Open streams of access logs.', {
    explanation: 'If there is no stream while requests pass, nothing is metered.',
  }),
  postern_access_log_entries_total: limits.counter([], 'Finished requests reported by access logs.'),
  postern_access_log_running_total: limits.counter([], 'Access log reports of a request that was still running.'),
  postern_access_log_errors_total: limits.counter(
    ['kind'],
    'Messages and entries that could not be read, and entries that could not be booked.',
    {
      explanation:
        '`message`: malformed messages, each of which ended its stream. `unreadable`: skipped entries. `entry`: entries that could not be booked.',
    },
  ),
  postern_metering_waiting: limits.gauge(['kind'], 'Items that wait to be written to the database.', {
    explanation:
      '`rate` and `tokens`: checks. `settlement`: ends of requests. `reservation`: renewals and releases of reservations.',
  }),
  postern_metering_held: limits.gauge(['kind'], 'Entries of limits that this process holds.', {
    explanation:
      'Of rate limits: `rate_subjects` and leased `requests`. Of quotas: `budgets`, their `tokens`, their `reserved_tokens`, and `reservations`.',
  }),
  postern_metering_statements_total: limits.counter([], 'Database statements sent for limits.'),
  postern_metering_faults_total: limits.counter([], 'Number of times that the database became unreachable for limits.'),
  postern_metering_alone: limits.gauge([], '1 while limits are enforced without the database.', {
    together: 'max',
  }),
  postern_metering_unreported: limits.gauge(
    [],
    'Allowed requests without a report of their end for longer than a reservation lasts; 0 while proxies report ends.',
    {
      explanation:
        "A reservation lasts for `limits.reservation-ttl` (default: 30 s). Shown if there are at least 10 such requests and no end of the process's requests has been reported since. `/readyz` shows it as a warning. Configure the proxy's access log: [Envoy](envoy.md#metering), [Istio](istio.md), [Envoy Gateway](envoy-gateway.md).",
    },
  ),
  postern_directory_down: directory.gauge(['directory'], '1 while a directory does not answer.', {
    together: 'max',
    explanation:
      'From a login, a refresh or a lookup that the directory did not answer until the next one that it answers.',
  }),
  postern_directory_logins_total: directory.counter(
    ['directory', 'outcome'],
    'Logins with a directory, by directory and outcome.',
    {
      explanation:
        "`success`, the directory's reason (`wrong_password`, `unknown_user`, `locked`, `several_names`, `other_domain`, `no_domain`, …), Postern's own (`quota_exceeded`, `tenant_changed`, …), `unavailable` or `too_many_at_once`.",
    },
  ),
  postern_directory_refreshes_total: directory.counter(
    ['directory', 'outcome'],
    'Token refreshes that queried a directory, by directory and outcome.',
    {
      explanation:
        '`success`, `removed`, `disabled`, `expired`, `locked`, `not_readable`, `several_names`, `several_ids`, `ambiguous_user`, `tenant_changed`, `unavailable` or `too_many_at_once`.',
    },
  ),
  postern_directory_lookups_total: directory.counter(
    ['directory', 'outcome'],
    'Daily lookups of key owners in a directory, by directory and outcome.',
    {
      explanation:
        '`success`, `removed`, `disabled`, `expired`, `locked`, `not_readable`, `several_names`, `several_ids`, `ambiguous_user`, `tenant_changed`, `too_many_removed` (the server did not act on the removal) or `unavailable`.',
    },
  ),
  postern_directory_tests_total: directory.counter(
    ['directory', 'outcome'],
    'Attempts to reach a directory, by directory and outcome.',
    { explanation: '`success`, or the step that failed.' },
  ),
} satisfies Readonly<Record<`postern_${string}`, MetricDefinition>>;

type MetricName = keyof typeof METRICS;

/** Names of the metrics of one type. */
export type NameOf<T extends MetricDefinition['type']> = {
  [N in MetricName]: (typeof METRICS)[N]['type'] extends T ? N : never;
}[MetricName];

type LabelsOf<N extends MetricName> = (typeof METRICS)[N]['labels'];

/** The values of the metric's labels in their order, then the value. A label without a value is left out. */
type Row<L extends readonly string[]> = readonly [...{ [I in keyof L]: string | undefined }, number];

/** The values of a metric at one scrape. Without labels: undefined shows no series. */
export type Reading<N extends MetricName> =
  LabelsOf<N> extends readonly [] ? number | undefined : Iterable<Row<LabelsOf<N>>>;
