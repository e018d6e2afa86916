-- Additive: decisions of checks in shadow mode, and policies that only report. Older servers write and read neither.
alter table recent_decisions
  -- True if the check changed nothing, because another gate decides the request.
  add column shadow boolean not null default false,
  -- Envoy's `x-request-id` of a check in shadow mode. The other gate's denials are found by it.
  add column client_request_id text collate "C",
  -- The report-only policy that would have denied the request that was allowed, or allowed the one that was denied.
  add column would_deny text collate "C",
  add column would_allow text collate "C";
create index recent_decisions_in_shadow on recent_decisions (tenant_id, outcome, request_id) where shadow;

-- Requests that another gate denied, as Envoy's access log reports them, for at most 24 hours. Unlogged like the decisions.
create unlogged table other_gate_denials (
  client_request_id text primary key collate "C",
  time timestamptz not null default clock_timestamp()
);
create index other_gate_denials_by_time on other_gate_denials (time);

-- Decisions in shadow mode, counted like `decision_counts`. They are in a table of their own because older servers read that one whole.
create table shadow_decision_counts (
  tenant_id text not null collate "C",
  minute timestamptz not null,
  code text not null collate "C",
  route text not null collate "C",
  decisions bigint not null,
  primary key (tenant_id, minute, code, route)
);
create index shadow_decision_counts_by_minute on shadow_decision_counts (minute);

-- A policy in mode `report` has no effect. Older servers know `enabled` only, so it is false for such a policy, and `reports`
-- says whether the policy is evaluated.
alter table policies
  add column mode text not null default 'enforce' check (mode in ('enforce', 'report')),
  add column reports boolean not null default false,
  add constraint policies_report_without_effect check (case mode when 'report' then not enabled else not reports end);
