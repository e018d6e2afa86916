-- Recent decisions of the gates: denials and a sample of allows, for at most 24 hours. The API's upkeep removes what exceeds the bounds.
-- The decision that a request id names explains a denial and may be tried against a changed policy. No decision reads this table.
--
-- Unlogged: a gate under a flood writes hundreds of rows per second that live for minutes. Logged, each row would cost the write-ahead log,
-- its disk and every standby. After a crash of PostgreSQL, or on a promoted standby, the table is empty; counts and audit rows are not affected.
create unlogged table recent_decisions (
  -- `req_` and an id in the order of time: newest first is the descending order of this column.
  request_id text primary key collate "C",
  time timestamptz not null,
  -- The effective tenant, or the principal's if the effective one is not known; empty if neither is.
  tenant_id text not null collate "C",
  outcome text not null collate "C" check (outcome in ('allow', 'deny')),
  code text not null collate "C",
  -- True if other decisions of the tenant and outcome were not recorded at that time.
  sampled boolean not null,
  principal_type text check (principal_type in ('user', 'api_key')),
  principal_id text collate "C",
  -- null if the check could not be read.
  method text,
  -- Without the query; secrets are masked.
  path text,
  -- A line of the route table; null if none matched.
  route text collate "C",
  permission text,
  resources text[] not null,
  client_ip text,
  policy text,
  detail text not null,
  -- Further facts that the decision read, for its explanation: { tenant, upgrade, reason, asked_tokens, altered }.
  facts jsonb not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_analyze_threshold = 5000);

-- For the pages of one tenant, and for the bound of each tenant and outcome.
create index recent_decisions_of_tenants on recent_decisions (tenant_id, outcome, request_id);
