-- The schema of the database after all migrations (src/store/migrations).
-- `npm run schema` writes this file, and a test compares it with a migrated database.

SET check_function_bodies = off;

CREATE TYPE metering_entry AS (
  n integer,
  holder text,
  counter bigint,
  held boolean,
  tenant_id text,
  period text,
  day date,
  model text,
  key_id text,
  user_id text,
  prompt_tokens bigint,
  completion_tokens bigint,
  cached_tokens bigint,
  total_tokens bigint,
  estimated boolean,
  books boolean,
  collections integer,
  requests bigint,
  collection bigint,
  response text,
  cost bigint,
  price_version integer,
  price bigint[],
  cache_write_tokens bigint,
  charges text[]
);

CREATE SEQUENCE change_seq AS bigint START WITH 1 INCREMENT BY 1;

CREATE OR REPLACE FUNCTION public.expiry_month_of(at timestamp with time zone)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select coalesce((extract(year from at at time zone 'UTC') * 12 + extract(month from at at time zone 'UTC'))::integer, 2147483647)
$function$;

CREATE OR REPLACE FUNCTION public.key_search_text(name text, description text, metadata jsonb)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE
AS $function$
begin
  return lower(coalesce(name, '') || E'\n' || description
    || coalesce((select string_agg(E'\n' || m.key || E'\n' || m.value, '' order by m.key collate "C") from jsonb_each_text(metadata) m), ''));
end
$function$;

CREATE OR REPLACE FUNCTION public.metering_budget_period(period text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select split_part(split_part(period, ' ', 1), '/', 1) || '#' || split_part(period, '#', 2) || ' '
    || split_part(split_part(period, ' ', 2), '#', 1)
$function$;

CREATE OR REPLACE FUNCTION public.metering_kept_until(period text)
 RETURNS date
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE
AS $function$
declare
  -- A month, a day, a week or an hour, of a budget or of the tenant's tokens.
  p text := substring(period from
    '^(?:bud_[^ ]+ )?([1-9][0-9]{3}-(?:W[0-5][0-9]|(?:0[1-9]|1[0-2])(?:-[0-3][0-9](?:T[0-9]{2}(?:[+-][0-9]{4})?)?)?))(?:#[0-9]+)?$');
  year integer := left(p, 4);
begin
  if p is null then
    return null;
  elsif substr(p, 6, 1) = 'W' then
    -- The first week of a year ends on January 11 at the latest.
    return make_date(year, 1, 4) + 7 * cast(substr(p, 7) as integer) + 100;
  end if;
  return make_date(year, cast(substr(p, 6, 2) as integer), 1) + case length(p)
    when 7 then 31 + 800
    when 10 then cast(substr(p, 9, 2) as integer) + 100
    else cast(substr(p, 9, 2) as integer) + 8 end;
end
$function$;

CREATE OR REPLACE FUNCTION public.usage_month(day date)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select (extract(year from day) * 12 + extract(month from day))::integer
$function$;

CREATE OR REPLACE FUNCTION public.user_account(id text, email text)
 RETURNS bytea
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE COST 10000
AS $function$
begin
  return sha256(convert_to(coalesce('email:' || email, 'user:' || id), 'UTF8'));
end
$function$;

CREATE OR REPLACE FUNCTION public.user_lexemes(tenant_id text, status text, role_names text[], search_text text)
 RETURNS tsvector
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE STRICT COST 10000
AS $function$
declare
  lexemes text[] := array(select E'\x01r' || name from unnest(role_names) name) || (E'\x01t' || tenant_id) || (E'\x01s' || status);
  marked integer := cardinality(lexemes);
begin
  for i in 1..length(search_text) loop
    lexemes[marked + i] := substr(search_text, i, 3);
  end loop;
  return array_to_tsvector(lexemes);
end
$function$;

CREATE TABLE audit_chain (
  only_row boolean DEFAULT true NOT NULL,
  seq bigint NOT NULL,
  hash bytea NOT NULL,
  mac bytea NOT NULL,
  CONSTRAINT audit_chain_pkey PRIMARY KEY (only_row),
  CONSTRAINT audit_chain_only_row_check CHECK (only_row)
);

CREATE TABLE audit_log (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  time timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  actor_type text NOT NULL,
  actor_id text,
  tenant_id text,
  address text,
  action text NOT NULL,
  target_type text,
  target_id text,
  result text NOT NULL,
  before jsonb,
  after jsonb,
  request_id text,
  octets integer,
  CONSTRAINT audit_log_pkey PRIMARY KEY (id),
  CONSTRAINT audit_log_actor_type_check CHECK (actor_type = ANY (ARRAY['user'::text, 'api_key'::text, 'system'::text, 'anonymous'::text])),
  CONSTRAINT audit_log_result_check CHECK (result = ANY (ARRAY['success'::text, 'failure'::text, 'refused'::text]))
);
CREATE INDEX audit_by_action ON audit_log USING btree (action, tenant_id, "time", id);
CREATE INDEX audit_by_actor ON audit_log USING btree (COALESCE(actor_id, actor_type), tenant_id, "time", id);
CREATE INDEX audit_by_request ON audit_log USING btree (request_id, "time", id) WHERE request_id IS NOT NULL;
CREATE INDEX audit_by_result ON audit_log USING btree (result, tenant_id, "time", id);
CREATE INDEX audit_by_target ON audit_log USING btree (target_id, tenant_id, "time", id);
CREATE INDEX audit_by_tenant ON audit_log USING btree (tenant_id, "time", id);
CREATE INDEX audit_by_time ON audit_log USING btree ("time", id);

CREATE TABLE audit_seals (
  seq bigint NOT NULL,
  kind text NOT NULL,
  sealed_at timestamp with time zone NOT NULL,
  row_ids bigint[] DEFAULT '{}'::bigint[] NOT NULL,
  row_digests bytea STORAGE EXTERNAL DEFAULT '\x'::bytea NOT NULL,
  removed_through bigint,
  removed_hash bytea,
  removed_rows bigint,
  previous_hash bytea NOT NULL,
  hash bytea NOT NULL,
  CONSTRAINT audit_seals_pkey PRIMARY KEY (seq),
  CONSTRAINT audit_seals_check CHECK (
CASE kind
    WHEN 'rows'::text THEN num_nulls(removed_through, removed_hash, removed_rows) = 3
    ELSE num_nulls(removed_through, removed_hash, removed_rows) = 0 AND cardinality(row_ids) = 0 AND row_digests = '\x'::bytea
END),
  CONSTRAINT audit_seals_kind_check CHECK (kind = ANY (ARRAY['rows'::text, 'removal'::text]))
);
CREATE INDEX audit_removals ON audit_seals USING btree (seq) WHERE kind = 'removal'::text;

CREATE TABLE audit_totals (
  only_row boolean DEFAULT true NOT NULL,
  sealed_rows bigint NOT NULL,
  seals bigint NOT NULL,
  CONSTRAINT audit_totals_pkey PRIMARY KEY (only_row),
  CONSTRAINT audit_totals_only_row_check CHECK (only_row)
);

CREATE TABLE audit_unsealed (
  id bigint NOT NULL,
  CONSTRAINT audit_unsealed_pkey PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000, autovacuum_analyze_scale_factor=0, autovacuum_analyze_threshold=10000);

CREATE TABLE changes (
  seq bigint NOT NULL,
  kind text NOT NULL,
  key text NOT NULL,
  at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  CONSTRAINT changes_pkey PRIMARY KEY (seq),
  CONSTRAINT changes_kind_check CHECK (kind = ANY (ARRAY['key'::text, 'user'::text, 'session'::text, 'tenant'::text, 'global'::text, 'signing_keys'::text, 'issuer'::text, 'link'::text, 'prices'::text, 'issuer_sessions'::text]))
);

CREATE TABLE collection_counts (
  tenant_id text NOT NULL,
  count bigint DEFAULT 0 NOT NULL,
  created bigint DEFAULT 0 NOT NULL,
  unmatched bigint[] DEFAULT '{}'::bigint[] NOT NULL,
  CONSTRAINT collection_counts_pkey PRIMARY KEY (tenant_id)
) WITH (fillfactor=50);

CREATE TABLE collection_removals (
  tenant_id text NOT NULL,
  collection bigint NOT NULL,
  created bigint NOT NULL,
  CONSTRAINT collection_removals_pkey PRIMARY KEY (tenant_id, collection)
);
CREATE INDEX collection_removals_by_age ON collection_removals USING btree (tenant_id, created);

CREATE TABLE collection_reservations (
  holder text NOT NULL,
  counter bigint NOT NULL,
  tenant_id text NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT collection_reservations_pkey PRIMARY KEY (holder, counter)
);
CREATE INDEX collection_reservations_by_expiry ON collection_reservations USING btree (expires_at);
CREATE INDEX collection_reservations_by_tenant ON collection_reservations USING btree (tenant_id, expires_at);

CREATE TABLE decision_counts (
  tenant_id text COLLATE "C" NOT NULL,
  minute timestamp with time zone NOT NULL,
  code text COLLATE "C" NOT NULL,
  route text COLLATE "C" NOT NULL,
  decisions bigint NOT NULL,
  CONSTRAINT decision_counts_pkey PRIMARY KEY (tenant_id, minute, code, route)
);
CREATE INDEX decision_counts_by_minute ON decision_counts USING btree (minute);
CREATE INDEX decision_counts_of_denials ON decision_counts USING btree (minute) WHERE code <> ALL (ARRAY['allow'::text, 'public'::text, 'unavailable'::text]);

CREATE TABLE deleted_roles (
  tenant_id text NOT NULL,
  name text NOT NULL,
  CONSTRAINT deleted_roles_pkey PRIMARY KEY (tenant_id, name)
);

CREATE TABLE ended_budgets (
  budget_id text NOT NULL,
  epoch integer NOT NULL,
  ended_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE INDEX ended_budgets_by_time ON ended_budgets USING btree (ended_at);

CREATE TABLE ended_issuer_sessions (
  issuer_id text NOT NULL,
  which text NOT NULL,
  begun_until timestamp with time zone NOT NULL,
  CONSTRAINT ended_issuer_sessions_pkey PRIMARY KEY (issuer_id, which),
  CONSTRAINT ended_issuer_sessions_which_check CHECK (which = ANY (ARRAY['all'::text, 'users'::text, 'logins'::text]))
);

CREATE TABLE feed_state (
  only_row boolean DEFAULT true NOT NULL,
  epoch uuid DEFAULT gen_random_uuid() NOT NULL,
  pruned_through bigint DEFAULT 0 NOT NULL,
  CONSTRAINT feed_state_pkey PRIMARY KEY (only_row),
  CONSTRAINT feed_state_only_row_check CHECK (only_row)
);

CREATE TABLE idempotent_answers (
  id bytea NOT NULL,
  fingerprint bytea NOT NULL,
  answer text NOT NULL,
  answered_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  CONSTRAINT idempotent_answers_pkey PRIMARY KEY (id)
);
CREATE INDEX idempotent_answers_by_time ON idempotent_answers USING btree (answered_at);

CREATE TABLE key_counts (
  owner text NOT NULL,
  active integer,
  created integer,
  CONSTRAINT key_counts_pkey PRIMARY KEY (owner)
);

CREATE TABLE key_end_cursors (
  days integer NOT NULL,
  ends_before timestamp with time zone NOT NULL,
  key_id text DEFAULT ''::text NOT NULL,
  CONSTRAINT key_end_cursors_pkey PRIMARY KEY (days)
);

CREATE TABLE key_permissions_used (
  key_id text NOT NULL,
  permission text NOT NULL,
  last_used_on date NOT NULL,
  CONSTRAINT key_permissions_used_pkey PRIMARY KEY (key_id, permission)
);
CREATE INDEX key_permissions_used_by_day ON key_permissions_used USING btree (last_used_on);

CREATE TABLE login_addresses (
  account bytea NOT NULL,
  address bytea NOT NULL,
  last_login_at timestamp with time zone NOT NULL,
  CONSTRAINT login_addresses_pkey PRIMARY KEY (account, address)
);
CREATE INDEX login_addresses_by_age ON login_addresses USING btree (last_login_at);

CREATE UNLOGGED TABLE login_failures (
  scope text NOT NULL,
  subject bytea NOT NULL,
  window_start timestamp with time zone NOT NULL,
  failures integer NOT NULL,
  locked_until timestamp with time zone,
  account bytea,
  max_failures integer DEFAULT 100 NOT NULL,
  announced_until timestamp with time zone,
  CONSTRAINT login_failures_pkey PRIMARY KEY (scope, subject),
  CONSTRAINT login_failures_scope_check CHECK (scope = ANY (ARRAY['pair'::text, 'account'::text, 'address'::text]))
);
CREATE INDEX login_failures_by_account ON login_failures USING btree (account) WHERE scope = 'pair'::text;
CREATE INDEX login_failures_by_window ON login_failures USING btree (window_start);
CREATE INDEX login_failures_locked ON login_failures USING btree (locked_until) WHERE scope = 'account'::text AND locked_until IS NOT NULL;
CREATE INDEX login_failures_locked_pairs ON login_failures USING btree (locked_until) WHERE scope = 'pair'::text AND locked_until IS NOT NULL;

CREATE TABLE meta (
  name text NOT NULL,
  value text NOT NULL,
  CONSTRAINT meta_pkey PRIMARY KEY (name)
);

CREATE TABLE metering_holders (
  id text NOT NULL,
  seen_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  turn bigint DEFAULT 0 NOT NULL,
  CONSTRAINT metering_holders_pkey PRIMARY KEY (id)
) WITH (fillfactor=50);

CREATE UNLOGGED TABLE open_requests (
  holder text NOT NULL,
  note bigint NOT NULL,
  entries jsonb NOT NULL,
  noted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  looked_at timestamp with time zone,
  CONSTRAINT open_requests_pkey PRIMARY KEY (holder, note)
);

CREATE UNLOGGED TABLE other_gate_denials (
  client_request_id text COLLATE "C" NOT NULL,
  time timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  CONSTRAINT other_gate_denials_pkey PRIMARY KEY (client_request_id)
);
CREATE INDEX other_gate_denials_by_time ON other_gate_denials USING btree ("time");

CREATE TABLE pending_responses (
  tenant_id text NOT NULL,
  response_id text NOT NULL,
  made_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  period text NOT NULL,
  day date NOT NULL,
  model text NOT NULL,
  key_id text NOT NULL,
  user_id text NOT NULL,
  prompt_tokens bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  cost bigint DEFAULT 0 NOT NULL,
  price bigint[],
  charges text[],
  CONSTRAINT pending_responses_pkey PRIMARY KEY (tenant_id, response_id)
);
CREATE INDEX pending_responses_by_age ON pending_responses USING btree (tenant_id, made_at);
CREATE INDEX pending_responses_by_time ON pending_responses USING btree (made_at);

CREATE TABLE price_lists (
  version integer NOT NULL,
  prices jsonb NOT NULL,
  set_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT price_lists_pkey PRIMARY KEY (version)
);

CREATE TABLE rate_windows (
  subject text NOT NULL,
  number bigint NOT NULL,
  granted bigint DEFAULT 0 NOT NULL,
  made_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  CONSTRAINT rate_windows_pkey PRIMARY KEY (subject, number)
) WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=5000);
CREATE INDEX rate_windows_by_age ON rate_windows USING btree (made_at);

CREATE UNLOGGED TABLE recent_decisions (
  request_id text COLLATE "C" NOT NULL,
  time timestamp with time zone NOT NULL,
  tenant_id text COLLATE "C" NOT NULL,
  outcome text COLLATE "C" NOT NULL,
  code text COLLATE "C" NOT NULL,
  sampled boolean NOT NULL,
  principal_type text,
  principal_id text COLLATE "C",
  method text,
  path text,
  route text COLLATE "C",
  permission text,
  resources text[] NOT NULL,
  client_ip text,
  policy text,
  detail text NOT NULL,
  facts jsonb NOT NULL,
  first_of text COLLATE "C",
  shadow boolean DEFAULT false NOT NULL,
  client_request_id text COLLATE "C",
  would_deny text COLLATE "C",
  would_allow text COLLATE "C",
  CONSTRAINT recent_decisions_pkey PRIMARY KEY (request_id),
  CONSTRAINT recent_decisions_outcome_check CHECK (outcome = ANY (ARRAY['allow'::text, 'deny'::text])),
  CONSTRAINT recent_decisions_principal_type_check CHECK (principal_type = ANY (ARRAY['user'::text, 'api_key'::text]))
) WITH (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=5000, autovacuum_analyze_threshold=5000);
CREATE INDEX recent_decisions_by_client_request ON recent_decisions USING btree (client_request_id) WHERE client_request_id IS NOT NULL;
CREATE UNIQUE INDEX recent_decisions_firsts ON recent_decisions USING btree (tenant_id, first_of) WHERE first_of IS NOT NULL;
CREATE INDEX recent_decisions_in_shadow ON recent_decisions USING btree (tenant_id, outcome, request_id) WHERE shadow;
CREATE INDEX recent_decisions_of_tenants ON recent_decisions USING btree (tenant_id, outcome, request_id);

CREATE TABLE replicas (
  id text NOT NULL,
  server text NOT NULL,
  applied bigint NOT NULL,
  trusted_until timestamp with time zone NOT NULL,
  reported_at timestamp with time zone,
  session integer,
  CONSTRAINT replicas_pkey PRIMARY KEY (id)
);

CREATE UNLOGGED TABLE reservation_renewals (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  holder text NOT NULL,
  counters bigint[] NOT NULL,
  heard_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  CONSTRAINT reservation_renewals_pkey PRIMARY KEY (id)
);
CREATE INDEX reservation_renewals_by_age ON reservation_renewals USING btree (heard_at);
CREATE INDEX reservation_renewals_by_holder ON reservation_renewals USING btree (holder, id);

CREATE TABLE rotated_key_digests (
  digest bytea NOT NULL,
  key_id text NOT NULL,
  stopped_at timestamp with time zone NOT NULL,
  CONSTRAINT rotated_key_digests_pkey PRIMARY KEY (digest)
);
CREATE INDEX rotated_key_digests_by_key ON rotated_key_digests USING btree (key_id, stopped_at);
CREATE INDEX rotated_key_digests_by_time ON rotated_key_digests USING btree (stopped_at);

CREATE TABLE settlement_news (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  holder text NOT NULL,
  counters bigint[] NOT NULL,
  totals bigint[] NOT NULL,
  costs bigint[],
  CONSTRAINT settlement_news_pkey PRIMARY KEY (id)
);
CREATE INDEX settlement_news_by_holder ON settlement_news USING btree (holder, id);

CREATE TABLE settlements (
  holder text NOT NULL,
  block bigint NOT NULL,
  bits bytea NOT NULL,
  settled_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  CONSTRAINT settlements_pkey PRIMARY KEY (holder, block)
) WITH (fillfactor=50);
CREATE INDEX settlements_by_time ON settlements USING btree (settled_at);

CREATE TABLE shadow_decision_counts (
  tenant_id text COLLATE "C" NOT NULL,
  minute timestamp with time zone NOT NULL,
  code text COLLATE "C" NOT NULL,
  route text COLLATE "C" NOT NULL,
  decisions bigint NOT NULL,
  CONSTRAINT shadow_decision_counts_pkey PRIMARY KEY (tenant_id, minute, code, route)
);
CREATE INDEX shadow_decision_counts_by_minute ON shadow_decision_counts USING btree (minute);

CREATE TABLE signing_keys (
  kid text NOT NULL,
  public_jwk jsonb NOT NULL,
  private_sealed bytea NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  signs_from timestamp with time zone NOT NULL,
  retired_at timestamp with time zone,
  CONSTRAINT signing_keys_pkey PRIMARY KEY (kid)
);

CREATE TABLE sso_used (
  digest bytea NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT sso_used_pkey PRIMARY KEY (digest)
);
CREATE INDEX sso_used_by_end ON sso_used USING btree (expires_at);

CREATE TABLE tenants (
  id text NOT NULL,
  name text NOT NULL,
  status text DEFAULT 'active'::text NOT NULL,
  settings jsonb DEFAULT '{}'::jsonb NOT NULL,
  quotas jsonb DEFAULT '{}'::jsonb NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  deleted_at timestamp with time zone,
  metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
  CONSTRAINT tenants_pkey PRIMARY KEY (id),
  CONSTRAINT tenants_status_check CHECK (status = ANY (ARRAY['active'::text, 'suspended'::text]))
);
CREATE INDEX tenants_by_lexeme ON tenants USING gin (user_lexemes(''::text, ''::text, '{}'::text[], lower((id || '
'::text) || name))) WITH (fastupdate=off) WHERE deleted_at IS NULL;
CREATE INDEX tenants_by_status ON tenants USING btree (status, id COLLATE "C") WHERE deleted_at IS NULL;
CREATE INDEX tenants_in_order ON tenants USING btree (id COLLATE "C") WHERE deleted_at IS NULL;

CREATE TABLE budgets (
  id text NOT NULL,
  tenant_id text NOT NULL,
  name text NOT NULL,
  unit text NOT NULL,
  limit_amount bigint NOT NULL,
  period text NOT NULL,
  timezone text,
  applies_to jsonb NOT NULL,
  per text DEFAULT 'all'::text NOT NULL,
  models text[],
  action text DEFAULT 'block'::text NOT NULL,
  alerts jsonb DEFAULT '[]'::jsonb NOT NULL,
  enabled boolean DEFAULT true NOT NULL,
  epoch integer DEFAULT 0 NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  octets integer GENERATED ALWAYS AS (200 + octet_length(name) + octet_length(applies_to::text) + 64 * COALESCE(cardinality(models), 0)) STORED,
  CONSTRAINT budgets_pkey PRIMARY KEY (id),
  CONSTRAINT budgets_action_check CHECK (action = ANY (ARRAY['block'::text, 'report'::text])),
  CONSTRAINT budgets_limit_amount_check CHECK (limit_amount >= 0 AND limit_amount <= '9007199254740991'::bigint),
  CONSTRAINT budgets_per_check CHECK (per = ANY (ARRAY['all'::text, 'key'::text, 'user'::text])),
  CONSTRAINT budgets_period_check CHECK (period = ANY (ARRAY['hour'::text, 'day'::text, 'week'::text, 'month'::text, 'total'::text])),
  CONSTRAINT budgets_unit_check CHECK (unit = ANY (ARRAY['money'::text, 'tokens'::text, 'requests'::text])),
  CONSTRAINT budgets_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX budgets_by_any_name ON budgets USING btree (name COLLATE "C", tenant_id COLLATE "C");
CREATE INDEX budgets_by_lexeme ON budgets USING gin (user_lexemes(''::text, ''::text, ARRAY[unit, period, action, enabled::text], lower(name))) WITH (fastupdate=off);
CREATE UNIQUE INDEX budgets_by_name ON budgets USING btree (tenant_id, name);

CREATE TABLE budget_alerts (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant_id text NOT NULL,
  budget_id text,
  period text NOT NULL,
  threshold double precision NOT NULL,
  spent bigint NOT NULL,
  limit_amount bigint NOT NULL,
  made_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  announced_at timestamp with time zone,
  CONSTRAINT budget_alerts_pkey PRIMARY KEY (id),
  CONSTRAINT budget_alerts_tenant_id_period_threshold_key UNIQUE (tenant_id, period, threshold),
  CONSTRAINT budget_alerts_budget_id_fkey FOREIGN KEY (budget_id) REFERENCES budgets(id) ON DELETE CASCADE
);
CREATE INDEX budget_alerts_by_budget ON budget_alerts USING btree (budget_id) WHERE budget_id IS NOT NULL;
CREATE INDEX budget_alerts_waiting ON budget_alerts USING btree (id) WHERE announced_at IS NULL;

CREATE TABLE issuers (
  id text NOT NULL,
  tenant_id text NOT NULL,
  name text NOT NULL,
  kind text NOT NULL,
  issuer text NOT NULL,
  audiences text[] NOT NULL,
  jwks_uri text,
  jwks jsonb,
  jwks_set_at timestamp with time zone,
  ca text,
  algorithms text[] NOT NULL,
  token_types text[],
  required_claims jsonb DEFAULT '[]'::jsonb NOT NULL,
  users jsonb,
  sso jsonb,
  sso_secret_sealed bytea,
  enabled boolean DEFAULT true NOT NULL,
  max_age_seconds integer,
  leeway_seconds integer DEFAULT 5 NOT NULL,
  revoked_before timestamp with time zone,
  earlier jsonb,
  users_since timestamp with time zone,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  value_since timestamp with time zone,
  CONSTRAINT issuers_pkey PRIMARY KEY (id),
  CONSTRAINT issuers_kind_check CHECK (kind = ANY (ARRAY['oidc'::text, 'spiffe'::text])),
  CONSTRAINT issuers_leeway_seconds_check CHECK (leeway_seconds >= 0 AND leeway_seconds <= 60),
  CONSTRAINT issuers_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id)
);
CREATE INDEX issuers_by_issuer ON issuers USING btree (issuer);
CREATE UNIQUE INDEX issuers_by_name ON issuers USING btree (tenant_id, name);
CREATE UNIQUE INDEX issuers_enabled_by_issuer ON issuers USING btree (issuer) WHERE enabled;
CREATE INDEX issuers_with_sso ON issuers USING btree (tenant_id) WHERE enabled AND sso IS NOT NULL;

CREATE TABLE api_keys (
  id text NOT NULL,
  tenant_id text NOT NULL,
  user_id text,
  description text NOT NULL,
  digest bytea NOT NULL,
  prefix text NOT NULL,
  last_four text NOT NULL,
  scopes text[] NOT NULL,
  resource_constraints jsonb DEFAULT '{}'::jsonb NOT NULL,
  rate_limit_rpm integer,
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  previous_digest bytea,
  previous_until timestamp with time zone,
  last_used_at timestamp with time zone,
  created_by text NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  expiry_month integer GENERATED ALWAYS AS (expiry_month_of(expires_at)) STORED NOT NULL,
  revoked boolean GENERATED ALWAYS AS (revoked_at IS NOT NULL) STORED NOT NULL,
  name text,
  metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
  imported boolean DEFAULT false NOT NULL,
  search_text text GENERATED ALWAYS AS (key_search_text(name, description, metadata)) STORED NOT NULL,
  disabled_at timestamp with time zone,
  proof_issuer_id text,
  proof_subject text,
  proof_is_glob boolean DEFAULT false NOT NULL,
  proof_claims jsonb,
  rate_limits jsonb,
  CONSTRAINT api_keys_pkey PRIMARY KEY (id),
  CONSTRAINT api_keys_digest_key UNIQUE (digest),
  CONSTRAINT api_keys_proof_whole CHECK ((proof_issuer_id IS NULL) = (proof_subject IS NULL) AND (proof_claims IS NULL) = (proof_subject IS NULL)),
  CONSTRAINT api_keys_proof_issuer_id_fkey FOREIGN KEY (proof_issuer_id) REFERENCES issuers(id),
  CONSTRAINT api_keys_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id)
) WITH (fillfactor=90);
CREATE INDEX api_keys_by_creator ON api_keys USING btree (created_by);
CREATE INDEX api_keys_by_end ON api_keys USING btree (LEAST(revoked_at, expires_at));
CREATE INDEX api_keys_by_expiry ON api_keys USING btree (expires_at, id);
CREATE INDEX api_keys_by_lexeme ON api_keys USING gin (user_lexemes(tenant_id, COALESCE(user_id, ''::text), '{}'::text[], search_text)) WITH (gin_pending_list_limit='256');
CREATE INDEX api_keys_by_name ON api_keys USING btree (lower(name) COLLATE "C", id) WHERE name IS NOT NULL;
CREATE INDEX api_keys_by_prefix ON api_keys USING btree (prefix COLLATE "C", tenant_id);
CREATE UNIQUE INDEX api_keys_by_previous_digest ON api_keys USING btree (previous_digest) WHERE previous_digest IS NOT NULL;
CREATE INDEX api_keys_by_proof ON api_keys USING btree (proof_issuer_id, proof_subject) WHERE proof_issuer_id IS NOT NULL;
CREATE INDEX api_keys_by_proof_glob ON api_keys USING btree (proof_issuer_id) WHERE proof_is_glob;
CREATE INDEX api_keys_by_tenant ON api_keys USING btree (tenant_id, id);
CREATE INDEX api_keys_by_tenant_expiry ON api_keys USING btree (tenant_id, expires_at, id);
CREATE INDEX api_keys_by_tenant_name ON api_keys USING btree (tenant_id, lower(name) COLLATE "C", id) WHERE name IS NOT NULL;
CREATE INDEX api_keys_by_tenant_order ON api_keys USING btree (tenant_id, created_at, id);
CREATE INDEX api_keys_by_user ON api_keys USING btree (user_id, id) WHERE user_id IS NOT NULL;
CREATE INDEX api_keys_by_user_expiry ON api_keys USING btree (user_id, expiry_month, revoked, id) INCLUDE (expires_at) WHERE user_id IS NOT NULL;
CREATE INDEX api_keys_in_order ON api_keys USING btree (created_at, id);
CREATE INDEX api_keys_of_tenant_itself ON api_keys USING btree (tenant_id, expiry_month, revoked) INCLUDE (expires_at) WHERE user_id IS NULL;

CREATE TABLE issuer_keys (
  issuer_id text NOT NULL,
  keys jsonb,
  fetched_at timestamp with time zone,
  next_fetch_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  attempted_at timestamp with time zone,
  error text,
  failures integer DEFAULT 0 NOT NULL,
  stale_announced_for timestamp with time zone,
  CONSTRAINT issuer_keys_pkey PRIMARY KEY (issuer_id),
  CONSTRAINT issuer_keys_issuer_id_fkey FOREIGN KEY (issuer_id) REFERENCES issuers(id) ON DELETE CASCADE
);
CREATE INDEX issuer_keys_due ON issuer_keys USING btree (next_fetch_at);

CREATE TABLE policies (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant_id text,
  name text NOT NULL,
  description text DEFAULT ''::text NOT NULL,
  effect text NOT NULL,
  actions text[] NOT NULL,
  resources text[] NOT NULL,
  conditions jsonb DEFAULT '{}'::jsonb NOT NULL,
  applies_to text NOT NULL,
  enabled boolean DEFAULT true NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  octets integer DEFAULT 0 NOT NULL,
  mode text DEFAULT 'enforce'::text NOT NULL,
  reports boolean DEFAULT false NOT NULL,
  CONSTRAINT policies_pkey PRIMARY KEY (id),
  CONSTRAINT policies_applies_to_check CHECK (applies_to = ANY (ARRAY['everyone'::text, 'roles'::text])),
  CONSTRAINT policies_effect_check CHECK (effect = ANY (ARRAY['allow'::text, 'deny'::text])),
  CONSTRAINT policies_mode_check CHECK (mode = ANY (ARRAY['enforce'::text, 'report'::text])),
  CONSTRAINT policies_report_without_effect CHECK (
CASE mode
    WHEN 'report'::text THEN NOT enabled
    ELSE NOT reports
END),
  CONSTRAINT policies_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id)
);
CREATE INDEX policies_by_bare_name ON policies USING btree (name);
CREATE UNIQUE INDEX policies_by_name ON policies USING btree (COALESCE(tenant_id, ''::text), name);
CREATE INDEX policies_by_owner_name ON policies USING btree (COALESCE(tenant_id, ''::text), name COLLATE "C");
CREATE INDEX policies_in_order ON policies USING btree (name COLLATE "C", COALESCE(tenant_id, ''::text) COLLATE "C");

CREATE TABLE policy_roles (
  policy_id bigint NOT NULL,
  role_name text NOT NULL,
  CONSTRAINT policy_roles_pkey PRIMARY KEY (policy_id, role_name),
  CONSTRAINT policy_roles_policy_id_fkey FOREIGN KEY (policy_id) REFERENCES policies(id) ON DELETE CASCADE
);
CREATE INDEX policy_roles_by_role ON policy_roles USING btree (role_name);

CREATE TABLE roles (
  tenant_id text NOT NULL,
  name text NOT NULL,
  description text DEFAULT ''::text NOT NULL,
  permissions text[] NOT NULL,
  resource_constraints jsonb DEFAULT '{}'::jsonb NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  octets integer DEFAULT 0 NOT NULL,
  CONSTRAINT roles_pkey PRIMARY KEY (tenant_id, name),
  CONSTRAINT roles_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id)
);
CREATE INDEX roles_by_tenant_name ON roles USING btree (tenant_id, name COLLATE "C");
CREATE INDEX roles_in_order ON roles USING btree (name COLLATE "C", tenant_id COLLATE "C");

CREATE TABLE sessions (
  id text NOT NULL,
  user_id text,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  last_used_at timestamp with time zone DEFAULT now() NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  ended_at timestamp with time zone,
  cookie boolean DEFAULT false NOT NULL,
  address text,
  user_agent text,
  refreshes integer DEFAULT 0 NOT NULL,
  api_key_id text,
  issuer_id text,
  scope text[],
  sso_sid text,
  sso_subject text,
  sso_id_token_sealed bytea,
  CONSTRAINT sessions_pkey PRIMARY KEY (id),
  CONSTRAINT sessions_of_one CHECK ((user_id IS NULL) <> (api_key_id IS NULL)),
  CONSTRAINT sessions_api_key_id_fkey FOREIGN KEY (api_key_id) REFERENCES api_keys(id) ON DELETE CASCADE
);
CREATE INDEX sessions_by_end ON sessions USING btree (COALESCE(ended_at, expires_at));
CREATE INDEX sessions_by_issuer ON sessions USING btree (issuer_id) WHERE issuer_id IS NOT NULL;
CREATE INDEX sessions_by_key ON sessions USING btree (api_key_id) WHERE api_key_id IS NOT NULL;
CREATE INDEX sessions_by_sso_sid ON sessions USING btree (issuer_id, sso_sid) WHERE sso_sid IS NOT NULL;
CREATE INDEX sessions_by_sso_subject ON sessions USING btree (issuer_id, sso_subject) WHERE sso_subject IS NOT NULL;
CREATE INDEX sessions_by_user ON sessions USING btree (user_id, id);
CREATE INDEX sessions_not_ended_by_issuer ON sessions USING btree (issuer_id, created_at) WHERE issuer_id IS NOT NULL AND ended_at IS NULL;
CREATE INDEX sessions_not_ended_by_user ON sessions USING btree (user_id) WHERE ended_at IS NULL;

CREATE TABLE refresh_tokens (
  digest bytea NOT NULL,
  session_id text NOT NULL,
  nonce bytea NOT NULL,
  issued_at timestamp with time zone DEFAULT now() NOT NULL,
  used_at timestamp with time zone,
  successor_digest bytea,
  CONSTRAINT refresh_tokens_pkey PRIMARY KEY (digest),
  CONSTRAINT refresh_tokens_session_id_fkey FOREIGN KEY (session_id) REFERENCES sessions(id) ON DELETE CASCADE
);
CREATE INDEX refresh_tokens_by_session ON refresh_tokens USING btree (session_id);

CREATE TABLE token_budgets (
  tenant_id text NOT NULL,
  period text NOT NULL,
  spent bigint DEFAULT 0 NOT NULL,
  held bigint DEFAULT 0 NOT NULL,
  CONSTRAINT token_budgets_pkey PRIMARY KEY (tenant_id, period)
) WITH (fillfactor=50);
CREATE INDEX token_budgets_by_age ON token_budgets USING btree (metering_kept_until(period)) WHERE metering_kept_until(period) IS NOT NULL;
CREATE INDEX token_budgets_by_budget ON token_budgets USING btree (metering_budget_period(period) COLLATE "C") WHERE starts_with(period, 'bud_'::text);
CREATE INDEX token_budgets_of_places ON token_budgets USING btree (tenant_id COLLATE "C") WHERE starts_with(period, 'parallel '::text);

CREATE TABLE token_holds (
  tenant_id text NOT NULL,
  period text NOT NULL,
  holder text NOT NULL,
  held bigint NOT NULL,
  changes bigint NOT NULL,
  CONSTRAINT token_holds_pkey PRIMARY KEY (tenant_id, period, holder)
) WITH (fillfactor=50);
CREATE INDEX token_holds_by_holder ON token_holds USING btree (holder COLLATE "C");

CREATE TABLE usage_by_model (
  tenant_id text NOT NULL,
  day date NOT NULL,
  model text NOT NULL,
  requests bigint DEFAULT 0 NOT NULL,
  prompt_tokens bigint DEFAULT 0 NOT NULL,
  completion_tokens bigint DEFAULT 0 NOT NULL,
  cached_tokens bigint DEFAULT 0 NOT NULL,
  total_tokens bigint DEFAULT 0 NOT NULL,
  estimated_tokens bigint DEFAULT 0 NOT NULL,
  cost bigint DEFAULT 0 NOT NULL,
  CONSTRAINT usage_by_model_pkey PRIMARY KEY (tenant_id, day, model)
) WITH (fillfactor=50);
CREATE INDEX usage_by_model_by_day ON usage_by_model USING btree (day);

CREATE TABLE usage_by_month (
  tenant_id text NOT NULL,
  month date NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  requests bigint DEFAULT 0 NOT NULL,
  prompt_tokens bigint DEFAULT 0 NOT NULL,
  completion_tokens bigint DEFAULT 0 NOT NULL,
  cached_tokens bigint DEFAULT 0 NOT NULL,
  total_tokens bigint DEFAULT 0 NOT NULL,
  estimated_tokens bigint DEFAULT 0 NOT NULL,
  cost bigint DEFAULT 0 NOT NULL,
  CONSTRAINT usage_by_month_pkey PRIMARY KEY (tenant_id, month, key_id, user_id)
) WITH (fillfactor=70);
CREATE INDEX usage_by_month_by_any_key ON usage_by_month USING btree (month, key_id);
CREATE INDEX usage_by_month_by_any_user ON usage_by_month USING btree (month, user_id);
CREATE INDEX usage_by_month_by_user ON usage_by_month USING btree (tenant_id, month, user_id);

CREATE TABLE usage_by_price (
  tenant_id text NOT NULL,
  day date NOT NULL,
  model text NOT NULL,
  price_version integer NOT NULL,
  requests bigint DEFAULT 0 NOT NULL,
  total_tokens bigint DEFAULT 0 NOT NULL,
  cost bigint DEFAULT 0 NOT NULL,
  CONSTRAINT usage_by_price_pkey PRIMARY KEY (tenant_id, day, model, price_version)
) WITH (fillfactor=50);
CREATE INDEX usage_by_price_by_day ON usage_by_price USING btree (day);

CREATE TABLE usage_daily (
  tenant_id text NOT NULL,
  day date NOT NULL,
  model text NOT NULL,
  key_id text NOT NULL,
  user_id text NOT NULL,
  requests bigint DEFAULT 0 NOT NULL,
  prompt_tokens bigint DEFAULT 0 NOT NULL,
  completion_tokens bigint DEFAULT 0 NOT NULL,
  cached_tokens bigint DEFAULT 0 NOT NULL,
  total_tokens bigint DEFAULT 0 NOT NULL,
  estimated_tokens bigint DEFAULT 0 NOT NULL,
  cost bigint DEFAULT 0 NOT NULL,
  CONSTRAINT usage_daily_pkey PRIMARY KEY (tenant_id, day, model, key_id, user_id)
) WITH (fillfactor=70);
CREATE INDEX usage_daily_by_any_key ON usage_daily USING btree (usage_month(day), key_id COLLATE "C");
CREATE INDEX usage_daily_by_any_user ON usage_daily USING btree (usage_month(day), user_id COLLATE "C");
CREATE INDEX usage_daily_by_day ON usage_daily USING btree (day);
CREATE INDEX usage_daily_by_key ON usage_daily USING btree (tenant_id, usage_month(day), key_id COLLATE "C");
CREATE INDEX usage_daily_by_user ON usage_daily USING btree (tenant_id, usage_month(day), user_id COLLATE "C");

CREATE TABLE usage_events (
  tenant_id text NOT NULL,
  id text NOT NULL,
  time timestamp with time zone NOT NULL,
  CONSTRAINT usage_events_pkey PRIMARY KEY (tenant_id, id)
);
CREATE INDEX usage_events_by_time ON usage_events USING btree ("time");

CREATE TABLE users (
  id text NOT NULL,
  tenant_id text NOT NULL,
  email text,
  name text NOT NULL,
  department text,
  status text DEFAULT 'active'::text NOT NULL,
  source text DEFAULT 'local'::text NOT NULL,
  password_hash text,
  password_changed_at timestamp with time zone,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  search_text text GENERATED ALWAYS AS (lower((((name || '
'::text) || COALESCE(email, ''::text)) || '
'::text) || COALESCE(department, ''::text))) STORED NOT NULL,
  role_names text[] DEFAULT '{}'::text[] NOT NULL,
  directory text,
  directory_id text,
  directory_suspension text,
  directory_suspended_at timestamp with time zone,
  directory_checked_at timestamp with time zone DEFAULT now(),
  directory_claimed_at timestamp with time zone,
  email_conflict text,
  metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
  deactivated_at timestamp with time zone,
  rate_limits jsonb,
  CONSTRAINT users_pkey PRIMARY KEY (id),
  CONSTRAINT users_email_key UNIQUE (email),
  CONSTRAINT users_conflict_without_email CHECK (email_conflict IS NULL OR email IS NULL AND directory IS NOT NULL),
  CONSTRAINT users_directory_source CHECK (directory IS NULL OR source = 'ldap'::text),
  CONSTRAINT users_directory_suspension_check CHECK (directory_suspension = ANY (ARRAY['removed'::text, 'disabled'::text, 'expired'::text, 'tenant_changed'::text, 'several_names'::text, 'several_ids'::text])),
  CONSTRAINT users_directory_whole CHECK ((directory IS NULL) = (directory_id IS NULL)),
  CONSTRAINT users_email_check CHECK (email = lower(email)),
  CONSTRAINT users_email_conflict_check CHECK (email_conflict = lower(email_conflict)),
  CONSTRAINT users_source_check CHECK ((source = ANY (ARRAY['local'::text, 'ldap'::text])) OR source ~~ 'issuer:%'::text),
  CONSTRAINT users_status_check CHECK (status = ANY (ARRAY['active'::text, 'deactivated'::text])),
  CONSTRAINT users_suspension_of_directory CHECK (directory_suspension IS NULL OR directory IS NOT NULL),
  CONSTRAINT users_suspension_since CHECK ((directory_suspension IS NULL) = (directory_suspended_at IS NULL)),
  CONSTRAINT users_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id)
);
CREATE INDEX users_by_account ON users USING btree (user_account(id, email)) WHERE source = 'local'::text;
CREATE INDEX users_by_directory_status ON users USING btree (COALESCE(directory_suspension, 'active'::text), id) WHERE source = 'ldap'::text;
CREATE INDEX users_by_lexeme ON users USING gin (user_lexemes(tenant_id, status, role_names, search_text)) WITH (fastupdate='on', gin_pending_list_limit='256');
CREATE INDEX users_by_name ON users USING btree (lower(name) COLLATE "C", id);
CREATE INDEX users_by_status ON users USING btree (status, id);
CREATE INDEX users_by_tenant ON users USING btree (tenant_id, id);
CREATE INDEX users_by_tenant_directory_status ON users USING btree (tenant_id, COALESCE(directory_suspension, 'active'::text), id) WHERE source = 'ldap'::text;
CREATE INDEX users_by_tenant_name ON users USING btree (tenant_id, lower(name) COLLATE "C", id);
CREATE INDEX users_by_tenant_order ON users USING btree (tenant_id, created_at, id);
CREATE INDEX users_by_tenant_status ON users USING btree (tenant_id, status, id);
CREATE UNIQUE INDEX users_directory_key ON users USING btree (directory, directory_id) WHERE directory IS NOT NULL;
CREATE INDEX users_in_email_conflict ON users USING btree (id) WHERE email_conflict IS NOT NULL;
CREATE INDEX users_in_order ON users USING btree (created_at, id);
CREATE INDEX users_of_directories ON users USING btree (id) WHERE directory IS NOT NULL;

CREATE TABLE one_time_tokens (
  digest bytea NOT NULL,
  user_id text NOT NULL,
  purpose text NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  used_at timestamp with time zone,
  maker_kind text,
  maker_tenant_id text,
  maker_id text,
  maker_address text,
  made_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  CONSTRAINT one_time_tokens_pkey PRIMARY KEY (digest),
  CONSTRAINT one_time_tokens_maker CHECK (
CASE
    WHEN maker_kind = ANY (ARRAY['user'::text, 'api_key'::text]) THEN maker_tenant_id IS NOT NULL AND maker_id IS NOT NULL
    ELSE maker_tenant_id IS NULL AND maker_id IS NULL AND maker_address IS NULL
END),
  CONSTRAINT one_time_tokens_maker_kind_check CHECK (maker_kind = ANY (ARRAY['user'::text, 'api_key'::text, 'system'::text])),
  CONSTRAINT one_time_tokens_purpose_check CHECK (purpose = 'password_setup'::text),
  CONSTRAINT one_time_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);
CREATE INDEX one_time_tokens_by_expiry ON one_time_tokens USING btree (expires_at);
CREATE INDEX one_time_tokens_by_user ON one_time_tokens USING btree (user_id);

CREATE TABLE user_identities (
  issuer_id text NOT NULL,
  subject text NOT NULL,
  user_id text NOT NULL,
  roles_as_of timestamp with time zone,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT user_identities_pkey PRIMARY KEY (issuer_id, subject),
  CONSTRAINT user_identities_issuer_id_fkey FOREIGN KEY (issuer_id) REFERENCES issuers(id),
  CONSTRAINT user_identities_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);
CREATE INDEX user_identities_by_user ON user_identities USING btree (user_id);

CREATE TABLE user_logins (
  user_id text NOT NULL,
  last_login_at timestamp with time zone NOT NULL,
  account bytea,
  tenant_id text,
  CONSTRAINT user_logins_pkey PRIMARY KEY (user_id),
  CONSTRAINT user_logins_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
) WITH (fillfactor=80);
CREATE INDEX user_logins_by_account ON user_logins USING btree (account) WHERE account IS NOT NULL;
CREATE INDEX user_logins_by_tenant_order ON user_logins USING btree (tenant_id, last_login_at, user_id);
CREATE INDEX user_logins_in_order ON user_logins USING btree (last_login_at, user_id);

CREATE TABLE user_roles (
  user_id text NOT NULL,
  role_name text NOT NULL,
  source text DEFAULT 'manual'::text NOT NULL,
  tenant_id text NOT NULL,
  status text NOT NULL,
  CONSTRAINT user_roles_pkey PRIMARY KEY (user_id, role_name, source),
  CONSTRAINT user_roles_source_check CHECK ((source = ANY (ARRAY['manual'::text, 'directory'::text])) OR source ~~ 'issuer:%'::text),
  CONSTRAINT user_roles_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);
CREATE INDEX user_roles_by_role ON user_roles USING btree (role_name, status, user_id);
CREATE INDEX user_roles_by_tenant_role ON user_roles USING btree (tenant_id, role_name, status, user_id);

CREATE TABLE webhook_cursor (
  only_row boolean DEFAULT true NOT NULL,
  seal bigint DEFAULT 0 NOT NULL,
  row_id bigint DEFAULT 0 NOT NULL,
  hash text DEFAULT ''::text NOT NULL,
  CONSTRAINT webhook_cursor_pkey PRIMARY KEY (only_row),
  CONSTRAINT webhook_cursor_only_row_check CHECK (only_row)
);

CREATE TABLE webhook_deliveries (
  id text NOT NULL,
  webhook_id text NOT NULL,
  type text NOT NULL,
  body text NOT NULL,
  state text DEFAULT 'waiting'::text NOT NULL,
  created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  waiting_since timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  next_attempt_at timestamp with time zone DEFAULT clock_timestamp(),
  attempted_at timestamp with time zone,
  attempts integer DEFAULT 0 NOT NULL,
  status integer,
  answer text,
  error text,
  CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (id),
  CONSTRAINT webhook_deliveries_state_check CHECK (state = ANY (ARRAY['waiting'::text, 'delivered'::text, 'failed'::text]))
);
CREATE INDEX webhook_deliveries_by_age ON webhook_deliveries USING btree (created_at);
CREATE INDEX webhook_deliveries_by_state ON webhook_deliveries USING btree (webhook_id, state, id);
CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries USING btree (webhook_id, id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries USING btree (webhook_id, next_attempt_at) WHERE state = 'waiting'::text;

CREATE TABLE webhooks (
  id text NOT NULL,
  tenant_id text NOT NULL,
  url text NOT NULL,
  events text[] NOT NULL,
  description text,
  enabled boolean DEFAULT true NOT NULL,
  disabled_reason text,
  secret_sealed bytea NOT NULL,
  previous_sealed bytea,
  previous_until timestamp with time zone,
  dropped bigint DEFAULT 0 NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT webhooks_pkey PRIMARY KEY (id),
  CONSTRAINT webhooks_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX webhooks_by_url ON webhooks USING btree (tenant_id, url);

CREATE OR REPLACE FUNCTION public.audit_totals_add()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  update audit_totals t set sealed_rows = t.sealed_rows + a.sealed_rows, seals = t.seals + a.seals
    from (select coalesce(sum(cardinality(row_ids)), 0) as sealed_rows, count(*) as seals from added) a where a.seals > 0;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.audit_totals_subtract()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  update audit_totals t set sealed_rows = t.sealed_rows - g.sealed_rows, seals = t.seals - g.seals
    from (select coalesce(sum(cardinality(row_ids)), 0) as sealed_rows, count(*) as seals from gone) g where g.seals > 0;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.check_rules_size(owner text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  if coalesce((select sum(octets) from policies where coalesce(tenant_id, '') = owner), 0)
    + coalesce((select sum(octets) from roles where tenant_id = owner), 0)
    + coalesce((
        select sum(16 + octet_length(r.role_name)) from policies p join policy_roles r on r.policy_id = p.id
        where coalesce(p.tenant_id, '') = owner
      ), 0) > 1024 * 1024 then
    raise check_violation using message = 'the roles and policies of a tenant take more than 1 MiB', constraint = 'rules_size';
  end if;
end
$function$;

CREATE OR REPLACE FUNCTION public.feed_append(change_kind text, change_key text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  told text := change_kind || ' ' || change_key;
  number bigint;
begin
  if current_setting('postern.told', true) is not distinct from told then
    return;
  end if;
  -- Until the end of the transaction, or of the savepoint that is rolled back.
  perform set_config('postern.told', told, true);
  perform pg_advisory_xact_lock(726543480);
  number := nextval('change_seq');
  insert into changes (seq, kind, key) values (number, change_kind, change_key);
  perform pg_notify('postern_changes', number::text);
end
$function$;

CREATE OR REPLACE FUNCTION public.feed_budget()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op <> 'INSERT' then
    perform feed_append('tenant', old.tenant_id);
  end if;
  if tg_op <> 'DELETE' then
    perform feed_append('tenant', new.tenant_id);
  end if;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.feed_ended_issuer_sessions()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform feed_append('issuer_sessions', new.issuer_id);
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.feed_identity()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op <> 'INSERT' then
    perform feed_append('link', old.issuer_id || ' ' || old.subject);
  end if;
  if tg_op <> 'DELETE' then
    perform feed_append('link', new.issuer_id || ' ' || new.subject);
  end if;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.feed_issuer()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op <> 'INSERT' then
    perform feed_append('issuer', old.issuer);
  end if;
  if tg_op <> 'DELETE' then
    perform feed_append('issuer', new.issuer);
  end if;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.feed_issuer_keys()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform feed_append('issuer', i.issuer) from issuers i where i.id = new.issuer_id;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.feed_key()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op <> 'INSERT' then
    perform feed_append('key', encode(old.digest, 'hex'));
    if old.previous_digest is not null then
      perform feed_append('key', encode(old.previous_digest, 'hex'));
    end if;
  end if;
  if tg_op <> 'DELETE' then
    perform feed_append('key', encode(new.digest, 'hex'));
    if new.previous_digest is not null then
      perform feed_append('key', encode(new.previous_digest, 'hex'));
    end if;
  end if;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.feed_key_proof()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op <> 'INSERT' and old.proof_issuer_id is not null then
    perform feed_proof(old.proof_issuer_id, old.proof_subject, old.proof_is_glob);
  end if;
  if tg_op <> 'DELETE' and new.proof_issuer_id is not null then
    perform feed_proof(new.proof_issuer_id, new.proof_subject, new.proof_is_glob);
  end if;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.feed_new_epoch()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  update feed_state set epoch = gen_random_uuid();
  perform pg_notify('postern_changes', '');
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.feed_newest()
 RETURNS bigint
 LANGUAGE plpgsql
 STABLE
 SET enable_seqscan TO 'off'
AS $function$
begin
  return (select c.seq from changes c order by c.seq desc limit 1);
end
$function$;

CREATE OR REPLACE FUNCTION public.feed_of_policy(tenant text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  if tenant is null then
    perform feed_append('global', '');
  else
    perform feed_append('tenant', tenant);
  end if;
end
$function$;

CREATE OR REPLACE FUNCTION public.feed_page(after bigint, most integer)
 RETURNS SETOF changes
 LANGUAGE plpgsql
 STABLE ROWS 1
 SET enable_seqscan TO 'off'
AS $function$
begin
  return query select * from changes c where c.seq > after order by c.seq limit most;
end
$function$;

CREATE OR REPLACE FUNCTION public.feed_policy()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op <> 'INSERT' then
    perform feed_of_policy(old.tenant_id);
  end if;
  if tg_op <> 'DELETE' and (tg_op = 'INSERT' or new.tenant_id is distinct from old.tenant_id) then
    perform feed_of_policy(new.tenant_id);
  end if;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.feed_policy_role()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  owner record;
begin
  for owner in
    select distinct tenant_id from policies
    where id = new.policy_id or id = old.policy_id
  loop
    perform feed_of_policy(owner.tenant_id);
  end loop;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.feed_position()
 RETURNS bigint
 LANGUAGE sql
 STABLE
AS $function$
  select greatest(feed_newest(), (select pruned_through from feed_state))
$function$;

CREATE OR REPLACE FUNCTION public.feed_prices()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform feed_append('prices', '');
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.feed_proof(issuer_id text, subject text, is_glob boolean)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  if is_glob then
    perform feed_append('issuer', i.issuer) from issuers i where i.id = issuer_id;
  else
    perform feed_append('link', issuer_id || ' ' || subject);
  end if;
end
$function$;

CREATE OR REPLACE FUNCTION public.feed_role()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op = 'UPDATE' and old.tenant_id <> new.tenant_id then
    perform feed_append('tenant', old.tenant_id);
  end if;
  perform feed_append('tenant', coalesce(new.tenant_id, old.tenant_id));
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.feed_session()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform feed_append('session', old.id);
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.feed_signing_key()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform feed_append('signing_keys', '');
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.feed_tenant()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op = 'UPDATE' and old.id <> new.id then
    perform feed_append('tenant', old.id);
  end if;
  perform feed_append('tenant', coalesce(new.id, old.id));
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.feed_user()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op = 'UPDATE' and old.id <> new.id then
    perform feed_append('user', old.id);
  end if;
  perform feed_append('user', coalesce(new.id, old.id));
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.feed_user_role()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op = 'INSERT' then
    if current_setting('postern.made_user', true) is not distinct from new.user_id then
      return null;
    end if;
  elsif old.user_id is distinct from new.user_id then
    perform feed_append('user', old.user_id);
  end if;
  if tg_op <> 'DELETE' then
    perform feed_append('user', new.user_id);
  end if;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.give_directory_email(user_of_directory text, address text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  -- Asked first, so that two users who exchange addresses do not wait for each other.
  if not exists (select from users where email = address and id <> user_of_directory) then
    begin
      update users set email = address, email_conflict = null where id = user_of_directory;
      return;
    exception when unique_violation then
      -- The other user was committed after the question.
    end;
  end if;
  update users set email = null, email_conflict = address where id = user_of_directory;
end
$function$;

CREATE OR REPLACE FUNCTION public.hold_turn(name text, alone boolean)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  if alone then
    perform pg_advisory_xact_lock(726543484, hashtext(name));
  else
    perform pg_advisory_xact_lock_shared(726543484, hashtext(name));
  end if;
end
$function$;

CREATE OR REPLACE FUNCTION public.metering_beat(holder_id text)
 RETURNS void
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
begin
  perform metering_introduce(holder_id);
  update metering_holders m set seen_at = clock_timestamp()
  where m.ctid = any (array(
    select o.ctid from metering_holders o
    where o.id = holder_id and o.seen_at < clock_timestamp() - interval '1 second' for update skip locked));
end
$function$;

CREATE OR REPLACE FUNCTION public.metering_book(entries metering_entry[])
 RETURNS void
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
begin
  insert into usage_daily as u (tenant_id, day, model, key_id, user_id, requests, prompt_tokens, completion_tokens, cached_tokens,
    total_tokens, estimated_tokens, cost)
  select e.tenant_id, e.day, e.model, e.key_id, e.user_id, sum(coalesce(e.requests, 1)), sum(e.prompt_tokens), sum(e.completion_tokens),
    sum(e.cached_tokens), sum(e.total_tokens), sum(case when e.estimated then e.total_tokens else 0 end),
    least(coalesce(sum(e.cost), 0), 9223372036854775807)
  from unnest(entries) e where e.books
  group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5
  on conflict (tenant_id, day, model, key_id, user_id) do update set
    requests = u.requests + excluded.requests,
    prompt_tokens = u.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = u.completion_tokens + excluded.completion_tokens,
    cached_tokens = u.cached_tokens + excluded.cached_tokens,
    total_tokens = u.total_tokens + excluded.total_tokens,
    estimated_tokens = u.estimated_tokens + excluded.estimated_tokens,
    cost = least(cast(u.cost as numeric) + excluded.cost, 9223372036854775807);
  insert into usage_by_model as u (tenant_id, day, model, requests, prompt_tokens, completion_tokens, cached_tokens,
    total_tokens, estimated_tokens, cost)
  select e.tenant_id, e.day, e.model, sum(coalesce(e.requests, 1)), sum(e.prompt_tokens), sum(e.completion_tokens),
    sum(e.cached_tokens), sum(e.total_tokens), sum(case when e.estimated then e.total_tokens else 0 end),
    least(coalesce(sum(e.cost), 0), 9223372036854775807)
  from unnest(entries) e where e.books
  group by 1, 2, 3 order by 1, 2, 3
  on conflict (tenant_id, day, model) do update set
    requests = u.requests + excluded.requests,
    prompt_tokens = u.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = u.completion_tokens + excluded.completion_tokens,
    cached_tokens = u.cached_tokens + excluded.cached_tokens,
    total_tokens = u.total_tokens + excluded.total_tokens,
    estimated_tokens = u.estimated_tokens + excluded.estimated_tokens,
    cost = least(cast(u.cost as numeric) + excluded.cost, 9223372036854775807);
  insert into usage_by_month as u (tenant_id, month, key_id, user_id, requests, prompt_tokens, completion_tokens, cached_tokens,
    total_tokens, estimated_tokens, cost)
  select e.tenant_id, cast(date_trunc('month', e.day) as date), e.key_id, e.user_id, sum(coalesce(e.requests, 1)), sum(e.prompt_tokens),
    sum(e.completion_tokens), sum(e.cached_tokens), sum(e.total_tokens), sum(case when e.estimated then e.total_tokens else 0 end),
    least(coalesce(sum(e.cost), 0), 9223372036854775807)
  from unnest(entries) e where e.books
  group by 1, 2, 3, 4 order by 1, 2, 3, 4
  on conflict (tenant_id, month, key_id, user_id) do update set
    requests = u.requests + excluded.requests,
    prompt_tokens = u.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = u.completion_tokens + excluded.completion_tokens,
    cached_tokens = u.cached_tokens + excluded.cached_tokens,
    total_tokens = u.total_tokens + excluded.total_tokens,
    estimated_tokens = u.estimated_tokens + excluded.estimated_tokens,
    cost = least(cast(u.cost as numeric) + excluded.cost, 9223372036854775807);
  insert into usage_by_price as u (tenant_id, day, model, price_version, requests, total_tokens, cost)
  select e.tenant_id, e.day, e.model, e.price_version, sum(coalesce(e.requests, 1)), sum(e.total_tokens),
    least(coalesce(sum(e.cost), 0), 9223372036854775807)
  from unnest(entries) e where e.books and e.price_version > 0
  group by 1, 2, 3, 4 order by 1, 2, 3, 4
  on conflict (tenant_id, day, model, price_version) do update set
    requests = u.requests + excluded.requests,
    total_tokens = u.total_tokens + excluded.total_tokens,
    cost = least(cast(u.cost as numeric) + excluded.cost, 9223372036854775807);
  perform metering_charge(entries);
end
$function$;

CREATE OR REPLACE FUNCTION public.metering_book_lost(hold_ttl_ms double precision, reservation_ttl_ms double precision, settlement_keep_ms double precision)
 RETURNS integer
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
declare
  moment timestamptz := clock_timestamp();
  alive timestamptz := moment - reservation_ttl_ms * interval '1 millisecond';
  lost record;
  due jsonb;
  running jsonb;
  newly integer := 0;
begin
  select o.holder, o.note, o.entries, o.noted_at into lost from open_requests o left join metering_holders m on m.id = o.holder
  where (m.id is null or m.seen_at < moment - hold_ttl_ms * interval '1 millisecond') and (o.looked_at is null or o.looked_at < alive)
  order by o.holder, o.note limit 1 for update of o skip locked;
  if not found then
    return null;
  end if;
  with renewed as (
    select counter from reservation_renewals r, unnest(r.counters) counter where r.holder = lost.holder and r.heard_at >= alive
  ), entries as (
    select e, (e ->> 'counter')::bigint in (select counter from renewed) as is_running from jsonb_array_elements(lost.entries) e
  )
  select coalesce(jsonb_agg(e) filter (where not is_running), '[]'), coalesce(jsonb_agg(e) filter (where is_running), '[]')
  into due, running from entries;
  -- Older settlements may be forgotten, so an older request could be booked twice.
  if lost.noted_at >= moment - settlement_keep_ms * interval '1 millisecond' then
    newly := (metering_settle(lost.holder, due)).booked;
  end if;
  if running = '[]' then
    delete from open_requests o where o.holder = lost.holder and o.note = lost.note;
  else
    update open_requests o set entries = running, looked_at = moment where o.holder = lost.holder and o.note = lost.note;
  end if;
  return newly;
end
$function$;

CREATE OR REPLACE FUNCTION public.metering_change_reservations(kinds text[], holders text[], numbers bigint[], ttl_ms double precision)
 RETURNS void
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
declare
  tenant text;
begin
  insert into reservation_renewals (holder, counters)
  select c.holder, array_agg(c.number order by c.number) from unnest(kinds, holders, numbers) as c(kind, holder, number)
  where c.kind = 'renew-tokens' and exists (select from metering_holders h where h.id = c.holder)
  group by 1 order by 1;
  -- A creation counts reservations under this lock, so it sees each either expired for good or renewed.
  for tenant in
    select distinct r.tenant_id from unnest(kinds, holders, numbers) as c(kind, holder, number)
    join collection_reservations r on r.holder = c.holder and r.counter = c.number
    where c.kind <> 'renew-tokens' order by 1
  loop
    perform from collection_counts t where t.tenant_id = tenant for update;
  end loop;
  update collection_reservations r set expires_at = greatest(r.expires_at, clock_timestamp() + ttl_ms * interval '1 millisecond')
  from unnest(kinds, holders, numbers) as c(kind, holder, number)
  where c.kind = 'renew-collection' and r.holder = c.holder and r.counter = c.number and r.expires_at > clock_timestamp();
  delete from collection_reservations r using unnest(kinds, holders, numbers) as c(kind, holder, number)
  where c.kind = 'release-collection' and r.holder = c.holder and r.counter = c.number;
end
$function$;

CREATE OR REPLACE FUNCTION public.metering_charge(entries metering_entry[])
 RETURNS void
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
declare
  tenants text[];
  periods text[];
  amounts bigint[];
begin
  with counted as (
    select e.tenant_id, e.period, e.total_tokens as amount from unnest(entries) e where e.books
    union all
    select e.tenant_id, substr(c.word, 2), case left(c.word, 1) when 'm' then e.cost when 't' then e.total_tokens else coalesce(e.requests, 1) end
    from unnest(entries) e cross join unnest(e.charges) as c(word)
  ), changed as (
    insert into token_budgets as b (tenant_id, period, spent)
    select tenant_id, period, least(sum(amount), 9007199254740991) from counted group by 1, 2 having sum(amount) <> 0 order by 1, 2
    on conflict (tenant_id, period) do update set spent = greatest(0, least(b.spent + excluded.spent, 9007199254740991))
    returning b.tenant_id, b.period, b.spent
  )
  select array_agg(c.tenant_id), array_agg(c.period), array_agg(c.spent) into tenants, periods, amounts from changed c;
  if 0 > any (amounts) then
    -- The counter was removed before its correction.
    update token_budgets b set spent = 0 from unnest(tenants, periods, amounts) as c(tenant_id, period, spent)
    where c.spent < 0 and b.tenant_id = c.tenant_id and b.period = c.period;
  end if;
  perform metering_note_alerts(tenants, periods, amounts);
end
$function$;

CREATE OR REPLACE FUNCTION public.metering_correct_responses(entries metering_entry[])
 RETURNS metering_entry[]
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
declare
  corrections metering_entry[] := '{}';
  tenant text;
  e metering_entry;
  p pending_responses;
  same jsonb;
begin
  insert into pending_responses (tenant_id, response_id, period, day, model, key_id, user_id, prompt_tokens, completion_tokens,
    cost, price, charges)
  select i.tenant_id, i.response, i.period, i.day, i.model, i.key_id, i.user_id, i.prompt_tokens, i.completion_tokens,
    coalesce(i.cost, 0), i.price, i.charges
  from unnest(entries) i where i.books order by 1, 2 on conflict do nothing;
  for tenant in
    select distinct i.tenant_id from unnest(entries) i where i.books order by 1
  loop
    delete from pending_responses r where r.ctid = any (array(
      select o.ctid from pending_responses o where o.tenant_id = tenant order by o.made_at desc offset 10000 for update skip locked));
  end loop;
  delete from pending_responses r where r.ctid = any (array(
    select o.ctid from pending_responses o where o.made_at < clock_timestamp() - interval '7 days'
    order by o.made_at limit 100 for update skip locked));
  for e in
    select * from unnest(entries) i where not i.books order by i.tenant_id, i.response, i.n
  loop
    delete from pending_responses r
    where r.tenant_id = e.tenant_id and r.response_id = e.response and r.made_at >= clock_timestamp() - interval '7 days'
    returning r.* into p;
    continue when not found;
    same := to_jsonb(p) || jsonb_build_object('requests', 0, 'books', true, 'price_version', coalesce(p.price[1], 0));
    corrections := corrections
      || jsonb_populate_record(null::metering_entry, same || jsonb_build_object('estimated', true,
        'prompt_tokens', -p.prompt_tokens, 'completion_tokens', -p.completion_tokens, 'cached_tokens', 0,
        'total_tokens', -(p.prompt_tokens + p.completion_tokens), 'cost', -p.cost))
      || jsonb_populate_record(null::metering_entry, same || jsonb_build_object('estimated', false,
        'prompt_tokens', e.prompt_tokens, 'completion_tokens', e.completion_tokens, 'cached_tokens', e.cached_tokens,
        'total_tokens', e.total_tokens,
        'cost', metering_cost(p.price, e.prompt_tokens, e.completion_tokens, e.cached_tokens, e.cache_write_tokens, e.total_tokens)));
  end loop;
  return corrections;
end
$function$;

CREATE OR REPLACE FUNCTION public.metering_cost(price bigint[], prompt bigint, completion bigint, cached bigint, cache_write bigint, total bigint)
 RETURNS bigint
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE
AS $function$
declare
  from_cache bigint := least(prompt, cached);
  to_cache bigint := least(prompt - from_cache, coalesce(cache_write, 0));
begin
  return case when price is null then 0 else least(9007199254740991, div(
    cast(prompt - from_cache - to_cache + greatest(0, total - prompt - completion) as numeric) * price[2]
      + cast(completion as numeric) * price[3] + cast(from_cache as numeric) * price[4] + cast(to_cache as numeric) * price[5] + 999999,
    1000000)) end;
end
$function$;

CREATE OR REPLACE FUNCTION public.metering_count_collections(entries metering_entry[], fresh integer[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  tenant text;
  e record;
  c record;
  -- Of the name's last removal that gave one back.
  since bigint;
  place integer;
begin
  for tenant in
    select distinct i.tenant_id from unnest(entries) i where i.collections is not null order by 1
  loop
    perform metering_lock_collections(tenant);
    select t.count, t.created, t.unmatched into c from collection_counts t where t.tenant_id = tenant;
    for e in
      select i.collections, i.collection from unnest(entries) i
      where i.tenant_id = tenant and i.collections <> 0 and i.n = any (fresh) order by i.n
    loop
      if e.collections > 0 then
        c.count := c.count + 1;
        c.created := c.created + 1;
        c.unmatched := (c.unmatched || c.created)[greatest(1, cardinality(c.unmatched) - 98):];
        continue;
      end if;
      continue when c.count = 0;
      select r.created into since from collection_removals r where r.tenant_id = tenant and r.collection = e.collection;
      if found then
        -- The oldest creation that may have been this name's.
        select min(u.n) into place from unnest(c.unmatched) with ordinality as u(made, n) where u.made > since;
        continue when place is null;
      else
        -- Collections that were counted in another way are older than all creations.
        place := case when cardinality(c.unmatched) >= c.count then 1 end;
      end if;
      c.count := c.count - 1;
      if place is not null then
        c.unmatched := c.unmatched[:place - 1] || c.unmatched[place + 1:];
      end if;
      if e.collection is not null then
        insert into collection_removals as r (tenant_id, collection, created) values (tenant, e.collection, c.created)
        on conflict (tenant_id, collection) do update set created = excluded.created;
      end if;
    end loop;
    update collection_counts t set count = c.count, created = c.created, unmatched = c.unmatched
    where t.tenant_id = tenant and (t.count, t.created) <> (c.count, c.created);
    delete from collection_removals r where r.ctid = any (array(
      select o.ctid from collection_removals o where o.tenant_id = tenant order by o.created desc offset 1000));
  end loop;
  delete from collection_reservations r using unnest(entries) i
  where i.collections is not null and r.holder = i.holder and r.counter = i.counter;
end
$function$;

CREATE OR REPLACE FUNCTION public.metering_expire_holds(unseen_ms double precision, most integer)
 RETURNS integer
 LANGUAGE sql
AS $function$
  select metering_release_lost_holds(unseen_ms, most)
$function$;

CREATE OR REPLACE FUNCTION public.metering_hold_tokens(holder_id text, holder_turn bigint, tenants text[], periods text[], quotas bigint[], wants bigint[], sums bigint[], confirmed bigint[])
 RETURNS TABLE(ask integer, given bigint, own bigint, used bigint, settled bigint)
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
declare
  locked integer;
begin
  insert into metering_holders as m (id, turn) values (holder_id, holder_turn)
  on conflict (id) do update set turn = excluded.turn, seen_at = clock_timestamp() where m.turn < excluded.turn;
  if not found then
    raise exception 'a later word of this holder was heard already' using errcode = 'PM001';
  end if;
  if exists (
    select from unnest(tenants, periods) as a(tenant, period)
    where not exists (select from token_budgets b where b.tenant_id = a.tenant and b.period = a.period offset 0))
  then
    insert into token_budgets as b (tenant_id, period)
    select a.tenant, a.period from unnest(tenants, periods) as a(tenant, period) order by 1, 2
    on conflict (tenant_id, period) do update set spent = b.spent;
  end if;
  perform from (select a.tenant, a.period from unnest(tenants, periods) as a(tenant, period) order by 1, 2) a
  cross join lateral (select from token_budgets b where b.tenant_id = a.tenant and b.period = a.period for update) b;
  get diagnostics locked = row_count;
  if locked < cardinality(tenants) then
    raise exception 'a counter was removed meanwhile' using errcode = 'serialization_failure';
  end if;
  return query
    with asked as materialized (
      select a.n, a.tenant, a.period, a.quota, a.want, a.sum, b.spent, b.held, coalesce(h.held, 0) as mine, h.place,
        greatest(a.sum - coalesce(h.changes, a.confirmed), -coalesce(h.held, 0)) as change
      from unnest(tenants, periods, quotas, wants, sums, confirmed) with ordinality
        as a(tenant, period, quota, want, sum, confirmed, n)
      cross join lateral (
        select o.spent, o.held from token_budgets o where o.tenant_id = a.tenant and o.period = a.period offset 0) b
      left join lateral (
        select o.held, o.changes, o.ctid as place from token_holds o
        where o.tenant_id = a.tenant and o.period = a.period and o.holder = holder_id offset 0) h on true
    ), allowed as materialized (
      select a.*, greatest(0, least(a.want, a.quota - a.spent - a.held - a.change)) as more from asked a
    ), granted as materialized (
      select a.*, a.change + a.more as difference, a.mine + a.change + a.more as kept from allowed a
    ), counted as (
      insert into token_budgets (tenant_id, period, held)
      select g.tenant, g.period, g.held + g.difference from granted g where g.difference <> 0
      on conflict (tenant_id, period) do update set held = excluded.held
    ), returned as (
      delete from token_holds h where h.ctid = any (array(select g.place from granted g where g.kept = 0 and g.place is not null))
    ), holding as (
      insert into token_holds as h (tenant_id, period, holder, held, changes)
      select g.tenant, g.period, holder_id, g.kept, g.sum from granted g where g.kept <> 0
      on conflict (tenant_id, period, holder) do update set held = excluded.held, changes = excluded.changes
    )
    select cast(g.n as integer), g.more, g.kept, g.spent + g.held + g.difference, g.spent from granted g;
end
$function$;

CREATE OR REPLACE FUNCTION public.metering_introduce(holder_id text)
 RETURNS void
 LANGUAGE sql
 SET enable_seqscan TO 'off'
AS $function$
  insert into metering_holders (id) select holder_id where not exists (select from metering_holders m where m.id = holder_id)
  on conflict do nothing
$function$;

CREATE OR REPLACE FUNCTION public.metering_lease_rates(subjects text[], numbers bigint[], limits bigint[], wants bigint[], changes bigint[])
 RETURNS TABLE(ask integer, given bigint, total bigint)
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
declare
  a record;
  before bigint;
begin
  for a in
    select t.n, t.subject, t.number, t.most, t.want, t.change
    from unnest(subjects, numbers, limits, wants, changes) with ordinality as t(subject, number, most, want, change, n)
    order by t.subject, t.number, t.n
  loop
    select w.granted into before from rate_windows w where w.subject = a.subject and w.number = a.number for update;
    if not found then
      insert into rate_windows as w (subject, number) values (a.subject, a.number)
      on conflict (subject, number) do update set granted = w.granted
      returning w.granted into before;
    end if;
    before := greatest(0, before + a.change);
    ask := a.n;
    given := greatest(0, least(a.want, a.most - before));
    total := before + given;
    update rate_windows w set granted = total where w.subject = a.subject and w.number = a.number;
    return next;
  end loop;
end
$function$;

CREATE OR REPLACE FUNCTION public.metering_lease_tokens(holder_id text, holder_turn bigint, tenants text[], periods text[], quotas bigint[], wants bigint[], sums bigint[], confirmed bigint[])
 RETURNS TABLE(ask integer, given bigint, own bigint, used bigint, settled bigint)
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
declare
  a record;
  b record;
  h record;
  change bigint;
begin
  insert into metering_holders as m (id, turn) values (holder_id, holder_turn)
  on conflict (id) do update set turn = excluded.turn, seen_at = clock_timestamp() where m.turn < excluded.turn;
  if not found then
    raise exception 'a later word of this holder was heard already' using errcode = 'PM001';
  end if;
  for a in
    select t.n, t.tenant, t.period, t.quota, t.want, t.sum, t.confirmed
    from unnest(tenants, periods, quotas, wants, sums, confirmed) with ordinality
      as t(tenant, period, quota, want, sum, confirmed, n)
    order by t.tenant, t.period, t.n
  loop
    select t.spent, t.held into b from token_budgets t where t.tenant_id = a.tenant and t.period = a.period for update;
    if not found then
      insert into token_budgets as t (tenant_id, period) values (a.tenant, a.period)
      on conflict (tenant_id, period) do update set spent = t.spent
      returning t.spent, t.held into b;
    end if;
    select t.held, t.changes into h from token_holds t
    where t.tenant_id = a.tenant and t.period = a.period and t.holder = holder_id;
    own := coalesce(h.held, 0);
    change := greatest(a.sum - coalesce(h.changes, a.confirmed), -own);
    given := greatest(0, least(a.want, a.quota - b.spent - b.held - change));
    change := change + given;
    ask := a.n;
    own := own + change;
    used := b.spent + b.held + change;
    settled := b.spent;
    if change <> 0 then
      update token_budgets t set held = b.held + change where t.tenant_id = a.tenant and t.period = a.period;
    end if;
    if own = 0 then
      delete from token_holds t where t.tenant_id = a.tenant and t.period = a.period and t.holder = holder_id;
    else
      insert into token_holds as t (tenant_id, period, holder, held, changes) values (a.tenant, a.period, holder_id, own, a.sum)
      on conflict (tenant_id, period, holder) do update set held = excluded.held, changes = excluded.changes;
    end if;
    return next;
  end loop;
end
$function$;

CREATE OR REPLACE FUNCTION public.metering_live_holders()
 RETURNS integer
 LANGUAGE sql
AS $function$
  select greatest(1, count(*))::integer from metering_holders where seen_at > clock_timestamp() - interval '15 seconds'
$function$;

CREATE OR REPLACE FUNCTION public.metering_lock_collections(tenant text)
 RETURNS bigint
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
declare
  present bigint;
begin
  insert into collection_counts as c (tenant_id) values (tenant)
  on conflict (tenant_id) do update set count = c.count
  returning c.count into present;
  return present
    + (select count(*) from collection_reservations r where r.tenant_id = tenant and r.expires_at > clock_timestamp());
end
$function$;

CREATE OR REPLACE FUNCTION public.metering_note_alerts(tenants text[], periods text[], amounts bigint[])
 RETURNS void
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
begin
  with counters as materialized (
    select c.tenant_id, l.budget_id, c.period, c.spent, l.limit_amount, l.alerts,
      array(select o.threshold from budget_alerts o where o.tenant_id = c.tenant_id and o.period = c.period) as noted
    from unnest(tenants, periods, amounts) as c(tenant_id, period, spent) cross join lateral (
      select b.id as budget_id, b.limit_amount, b.alerts from budgets b
      -- Found by its id, never by the index of the tenant's names.
      where b.id = split_part(split_part(c.period, ' ', 1), '/', 1) and b.tenant_id collate "C" = c.tenant_id and b.enabled
        and b.alerts <> '[]' and cast(b.epoch as text) = split_part(c.period, '#', 2)
      union all
      select null, cast(cast(t.quotas ->> 'monthly_tokens' as numeric) as bigint), '[0.8, 1]' from tenants t
      where t.id = c.tenant_id and c.period ~ '^[0-9]{4}-[0-9]{2}$'
    ) l
    where coalesce(metering_kept_until(c.period) >= current_date, true)
  ), reached as materialized (
    select c.tenant_id, c.budget_id, c.period, a.threshold, c.spent, c.limit_amount
    from counters c cross join lateral (select cast(value as numeric) as threshold from jsonb_array_elements(c.alerts)) a
    where c.spent >= a.threshold * c.limit_amount and cast(a.threshold as double precision) <> all (c.noted)
  ), kept as materialized (
    select b.id from (select distinct r.budget_id from reached r order by 1) r
    cross join lateral (select o.id from budgets o where o.id = r.budget_id for key share) b
  )
  insert into budget_alerts (tenant_id, budget_id, period, threshold, spent, limit_amount)
  select r.tenant_id, r.budget_id, r.period, r.threshold, r.spent, r.limit_amount from reached r
  where r.budget_id is null or r.budget_id in (select k.id from kept k)
  order by 1, 3, 4
  on conflict do nothing;
end
$function$;

CREATE OR REPLACE FUNCTION public.metering_pending_responses(entries metering_entry[])
 RETURNS metering_entry[]
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
declare
  corrections metering_entry[] := '{}';
  tenant text;
  e metering_entry;
  p pending_responses;
begin
  insert into pending_responses (tenant_id, response_id, period, day, model, key_id, user_id, prompt_tokens, completion_tokens)
  select i.tenant_id, i.response, i.period, i.day, i.model, i.key_id, i.user_id, i.prompt_tokens, i.completion_tokens
  from unnest(entries) i where i.books order by 1, 2 on conflict do nothing;
  for tenant in
    select distinct i.tenant_id from unnest(entries) i where i.books order by 1
  loop
    delete from pending_responses r where r.ctid = any (array(
      select o.ctid from pending_responses o where o.tenant_id = tenant order by o.made_at desc offset 10000));
  end loop;
  delete from pending_responses r where r.ctid = any (array(
    select o.ctid from pending_responses o where o.made_at < clock_timestamp() - interval '7 days'
    order by o.made_at limit 100 for update skip locked));
  for e in
    select * from unnest(entries) i where not i.books order by i.tenant_id, i.response, i.n
  loop
    delete from pending_responses r
    where r.tenant_id = e.tenant_id and r.response_id = e.response and r.made_at >= clock_timestamp() - interval '7 days'
    returning r.* into p;
    continue when not found;
    corrections := corrections
      || jsonb_populate_record(null::metering_entry, to_jsonb(p) || jsonb_build_object('requests', 0, 'books', true, 'estimated', true,
        'prompt_tokens', -p.prompt_tokens, 'completion_tokens', -p.completion_tokens, 'cached_tokens', 0,
        'total_tokens', -(p.prompt_tokens + p.completion_tokens)))
      || jsonb_populate_record(null::metering_entry, to_jsonb(p) || jsonb_build_object('requests', 0, 'books', true, 'estimated', false,
        'prompt_tokens', e.prompt_tokens, 'completion_tokens', e.completion_tokens, 'cached_tokens', e.cached_tokens,
        'total_tokens', e.total_tokens));
  end loop;
  return corrections;
end
$function$;

CREATE OR REPLACE FUNCTION public.metering_release_lost_holds(unseen_ms double precision, most integer)
 RETURNS integer
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
declare
  lost text[];
  h record;
  removed integer := 0;
begin
  lost := array(
    select m.id from metering_holders m
    where m.seen_at < clock_timestamp() - unseen_ms * interval '1 millisecond' and exists (select from token_holds t where t.holder collate "C" = m.id)
    order by m.id limit 100 for update of m skip locked);
  for h in
    select t.tenant_id, t.period, t.holder, t.held from token_holds t where t.holder collate "C" = any (lost)
    order by t.tenant_id, t.period, t.holder limit most
  loop
    update token_budgets t set held = t.held - h.held where t.tenant_id = h.tenant_id and t.period = h.period;
    delete from token_holds t where t.tenant_id = h.tenant_id and t.period = h.period and t.holder = h.holder;
    removed := removed + 1;
  end loop;
  return removed;
end
$function$;

CREATE OR REPLACE FUNCTION public.metering_reserve_collection(holder_id text, number bigint, tenant text, most bigint, ttl_ms double precision, OUT reserved boolean, OUT present bigint)
 RETURNS record
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
begin
  present := metering_lock_collections(tenant);
  reserved := present < most;
  if reserved then
    insert into collection_reservations (holder, counter, tenant_id, expires_at)
    values (holder_id, number, tenant, clock_timestamp() + ttl_ms * interval '1 millisecond');
  end if;
end
$function$;

CREATE OR REPLACE FUNCTION public.metering_settle(settler text, entries jsonb, OUT booked integer, OUT unknown integer)
 RETURNS record
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
declare
  items metering_entry[];
  fresh integer[] := '{}';
  ends metering_entry[];
  g record;
  seen bytea;
begin
  select coalesce(array_agg(e order by e.n), '{}') into items
  from jsonb_populate_recordset(null::metering_entry, entries) e where exists (select from metering_holders h where h.id = e.holder);
  unknown := jsonb_array_length(entries) - cardinality(items);
  for g in
    select e.holder, e.counter / 1024 as block, array_agg((e.counter % 1024)::integer order by e.n) as bits,
      array_agg(e.n order by e.n) as places
    from unnest(items) e group by 1, 2 order by 1, 2
  loop
    select s.bits into seen from settlements s where s.holder = g.holder and s.block = g.block for update;
    if not found then
      insert into settlements as s (holder, block, bits) values (g.holder, g.block, decode(repeat('00', 128), 'hex'))
      on conflict (holder, block) do update set settled_at = clock_timestamp()
      returning s.bits into seen;
    end if;
    for i in 1 .. cardinality(g.bits) loop
      if get_bit(seen, g.bits[i]::bigint) = 0 then
        seen := set_bit(seen, g.bits[i]::bigint, 1);
        fresh := fresh || g.places[i];
      end if;
    end loop;
    update settlements s set bits = seen, settled_at = clock_timestamp() where s.holder = g.holder and s.block = g.block;
  end loop;
  select coalesce(array_agg(e order by e.n), '{}') into ends from unnest(items) e where e.n = any (fresh);
  perform metering_book(ends || metering_correct_responses((select coalesce(array_agg(e order by e.n), '{}') from unnest(ends) e
    where e.response is not null)));
  perform metering_count_collections(items, fresh);
  insert into settlement_news (holder, counters, totals, costs)
  select e.holder, array_agg(e.counter order by e.n), array_agg(e.total_tokens order by e.n), array_agg(coalesce(e.cost, 0) order by e.n)
  from unnest(ends) e where e.held and e.holder <> settler
  group by 1 order by 1;
  booked := cardinality(fresh);
end
$function$;

CREATE OR REPLACE FUNCTION public.metering_tidy(window_keep_ms double precision, hold_ttl_ms double precision, settlement_keep_ms double precision, most integer, OUT windows integer, OUT holds integer, OUT creations integer, OUT blocks integer, OUT holders integer)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
declare
  moment timestamptz := clock_timestamp();
  keep interval := settlement_keep_ms * interval '1 millisecond';
begin
  if not pg_try_advisory_xact_lock(726543494) then
    return;
  end if;
  delete from rate_windows w where w.ctid = any (array(
    select r.ctid from rate_windows r where r.made_at < moment - window_keep_ms * interval '1 millisecond'
    order by r.made_at limit most for update skip locked));
  get diagnostics windows = row_count;
  holds := metering_expire_holds(hold_ttl_ms, most);
  delete from collection_reservations c where c.ctid = any (array(
    select r.ctid from collection_reservations r where r.expires_at < moment
    order by r.expires_at limit most for update skip locked));
  get diagnostics creations = row_count;
  delete from settlements s where s.ctid = any (array(
    select r.ctid from settlements r where r.settled_at < moment - keep limit most for update skip locked));
  get diagnostics blocks = row_count;
  delete from settlement_news n where n.id = any (array(
    select r.id from settlement_news r
    where not exists (select from metering_holders h where h.id = r.holder and h.seen_at >= moment - hold_ttl_ms * interval '1 millisecond')
    limit most for update skip locked));
  delete from reservation_renewals n where n.id = any (array(
    select r.id from reservation_renewals r where r.heard_at < moment - hold_ttl_ms * interval '1 millisecond'
    order by r.heard_at limit most for update skip locked));
  delete from metering_holders m where m.ctid = any (array(
    select r.ctid from metering_holders r
    where r.seen_at < moment - keep and not exists (select from token_holds t where t.holder = r.id)
    limit most for update skip locked));
  get diagnostics holders = row_count;
end
$function$;

CREATE OR REPLACE FUNCTION public.metering_tidy_counters(most integer)
 RETURNS integer
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
declare
  ended record;
  removed integer;
  gone integer;
begin
  if not pg_try_advisory_xact_lock(726543495) then
    return 0;
  end if;
  with counters as (
    delete from token_budgets b where b.ctid = any (array(
      select r.ctid from token_budgets r where metering_kept_until(r.period) < current_date and r.held = 0
      order by metering_kept_until(r.period) limit most for update skip locked))
    returning b.tenant_id, b.period
  ), alerts as (
    delete from budget_alerts a using counters c where a.tenant_id = c.tenant_id and a.period = c.period
  )
  select count(*) into removed from counters;
  delete from token_budgets b where b.ctid = any (array(
    select r.ctid from token_budgets r where starts_with(r.period, 'parallel ') and r.held = 0
    limit most for update skip locked));
  for ended in
    select e.ctid as place, e.budget_id || '#' || e.epoch as amount from ended_budgets e
    where e.ended_at < clock_timestamp() - interval '8 days' order by e.ended_at limit 100 for update skip locked
  loop
    with counters as (
      delete from token_budgets b where b.ctid = any (array(
        select r.ctid from token_budgets r
        where starts_with(r.period, 'bud_') and metering_budget_period(r.period) collate "C" > ended.amount || ' '
          and metering_budget_period(r.period) collate "C" < ended.amount || '!' and r.held = 0
        limit most - removed for update skip locked))
      returning b.tenant_id, b.period
    ), alerts as (
      delete from budget_alerts a using counters c where a.tenant_id = c.tenant_id and a.period = c.period
    )
    select count(*) into gone from counters;
    removed := removed + gone;
    exit when removed >= most;
    if not exists (
      select from token_budgets r
      where starts_with(r.period, 'bud_') and metering_budget_period(r.period) collate "C" > ended.amount || ' '
        and metering_budget_period(r.period) collate "C" < ended.amount || '!') then
      delete from ended_budgets e where e.ctid = ended.place;
    end if;
  end loop;
  return removed;
end
$function$;

CREATE OR REPLACE FUNCTION public.note_deactivation()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  new.deactivated_at := case when new.status = 'deactivated' then clock_timestamp() end;
  return new;
end
$function$;

CREATE OR REPLACE FUNCTION public.note_ended_budget()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into ended_budgets (budget_id, epoch) values (old.id, old.epoch);
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.policies_check_name()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform pg_advisory_xact_lock(726543482);
  if exists (
    select from policies p
    where p.name = new.name and p.id <> new.id and (p.tenant_id is null or new.tenant_id is null or p.tenant_id = new.tenant_id)
  ) then
    raise unique_violation using message = 'a policy of this name exists', constraint = 'policies_by_name', table = 'policies';
  end if;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.policies_count_octets()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  new.octets := 128 + octet_length(new.name)
    + octet_length(new.actions::text) + octet_length(new.resources::text) + octet_length(new.conditions::text);
  return new;
end
$function$;

CREATE OR REPLACE FUNCTION public.policy_roles_hold_owner()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform hold_turn(coalesce(p.tenant_id, ''), true) from policies p where p.id = coalesce(new.policy_id, old.policy_id);
  return coalesce(new, old);
end
$function$;

CREATE OR REPLACE FUNCTION public.refuse_large_rules()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op = 'INSERT' or new.octets > old.octets then
    perform check_rules_size(coalesce(new.tenant_id, ''));
  end if;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.refuse_many_attached_roles()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform check_rules_size(owner) from (
    select distinct coalesce(p.tenant_id, '') as owner from policies p where p.id in (select policy_id from new_rows)
  ) owners;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.roles_count_octets()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  new.octets := 128 + octet_length(new.name) + octet_length(new.permissions::text) + octet_length(new.resource_constraints::text);
  return new;
end
$function$;

CREATE OR REPLACE FUNCTION public.roles_refuse_deleted_name()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if exists (select from deleted_roles d where d.tenant_id = new.tenant_id and d.name = new.name) then
    raise unique_violation using message = 'users still have rows of a deleted role of this name', constraint = 'roles_deleted_name',
      table = 'roles';
  end if;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.rules_hold_owner()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform hold_turn(coalesce(new.tenant_id, old.tenant_id, ''), true);
  return coalesce(new, old);
end
$function$;

CREATE OR REPLACE FUNCTION public.user_logins_fill()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  select u.tenant_id into new.tenant_id from users u where u.id = new.user_id;
  return new;
end
$function$;

CREATE OR REPLACE FUNCTION public.user_query(tenant_id text, status text, role_name text, needle text)
 RETURNS tsquery
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
declare
  last integer := greatest(length(needle) - 2, 1);
  wanted text[] := array_remove(array[E'\x01t' || tenant_id, E'\x01s' || status, E'\x01r' || role_name], null);
  lexeme text;
  asked text := '';
begin
  -- Side by side, and the last: what lies across two of them is left to the comparison of texts.
  for i in 1..last by 3 loop
    wanted := wanted || substr(needle, i, 3);
  end loop;
  wanted := wanted || substr(needle, last, 3);
  foreach lexeme in array wanted loop
    asked := asked || case when asked = '' then '' else ' & ' end
      || '''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || case when length(lexeme) < 3 then ''':*' else '''' end;
  end loop;
  return asked::tsquery;
end
$function$;

CREATE OR REPLACE FUNCTION public.user_roles_collect()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  touched text[];
begin
  if tg_op = 'INSERT' then
    touched := array(select distinct user_id from new_rows);
  elsif tg_op = 'DELETE' then
    touched := array(select distinct user_id from old_rows);
  else
    touched := array(
      select n.user_id from new_rows n where not exists (select from old_rows o where o.user_id = n.user_id and o.role_name = n.role_name)
      union
      select o.user_id from old_rows o where not exists (select from new_rows n where n.user_id = o.user_id and n.role_name = o.role_name));
  end if;
  if touched <> '{}' then
    -- What another transaction takes away is waited for, and counted by the next statement. Who adds a role holds the row already.
    if tg_op <> 'INSERT' then
      perform from users u where u.id = any(touched) order by u.id for no key update;
    end if;
    update users u set role_names = held.names
    from (
      select one.id, array(select distinct r.role_name from user_roles r where r.user_id = one.id order by 1) as names
      from unnest(touched) one (id)
    ) held
    where u.id = held.id and u.role_names <> held.names;
  end if;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.user_roles_collect_new()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if exists (select from new_rows n join users u on u.id = n.user_id where n.role_name <> all(u.role_names)) then
    update users u set role_names = array(select distinct r.role_name from user_roles r where r.user_id = u.id order by 1)
    where u.id in (select n.user_id from new_rows n join users v on v.id = n.user_id where n.role_name <> all(v.role_names));
  end if;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.user_roles_fill()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  select u.tenant_id, u.status into new.tenant_id, new.status from users u where u.id = new.user_id for share;
  if not found then
    raise foreign_key_violation using message = 'no such user', constraint = 'user_roles_user_id_fkey', table = 'user_roles';
  end if;
  return new;
end
$function$;

CREATE OR REPLACE FUNCTION public.users_made()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  -- Until the end of the transaction, or of the savepoint that is rolled back.
  perform set_config('postern.made_user', new.id, true);
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.users_spread()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  update user_roles set tenant_id = new.tenant_id, status = new.status where user_id = new.id;
  if old.tenant_id <> new.tenant_id then
    update user_logins set tenant_id = new.tenant_id where user_id = new.id;
  end if;
  return null;
end
$function$;

CREATE CONSTRAINT TRIGGER api_keys_feed AFTER UPDATE ON api_keys DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (old.tenant_id IS DISTINCT FROM new.tenant_id OR old.user_id IS DISTINCT FROM new.user_id OR old.digest IS DISTINCT FROM new.digest OR old.scopes IS DISTINCT FROM new.scopes OR old.resource_constraints IS DISTINCT FROM new.resource_constraints OR old.rate_limit_rpm IS DISTINCT FROM new.rate_limit_rpm OR old.expires_at IS DISTINCT FROM new.expires_at OR old.revoked_at IS DISTINCT FROM new.revoked_at OR old.previous_digest IS DISTINCT FROM new.previous_digest OR old.previous_until IS DISTINCT FROM new.previous_until) EXECUTE FUNCTION feed_key();
CREATE CONSTRAINT TRIGGER api_keys_feed_disabled AFTER UPDATE ON api_keys DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (old.disabled_at IS DISTINCT FROM new.disabled_at) EXECUTE FUNCTION feed_key();
CREATE TRIGGER api_keys_feed_emptied AFTER TRUNCATE ON api_keys FOR EACH STATEMENT EXECUTE FUNCTION feed_new_epoch();
CREATE CONSTRAINT TRIGGER api_keys_feed_limits AFTER UPDATE ON api_keys DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (old.rate_limits IS DISTINCT FROM new.rate_limits OR old.metadata IS DISTINCT FROM new.metadata) EXECUTE FUNCTION feed_key();
CREATE CONSTRAINT TRIGGER api_keys_feed_new AFTER INSERT OR DELETE ON api_keys DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION feed_key();
CREATE CONSTRAINT TRIGGER api_keys_feed_proof AFTER UPDATE ON api_keys DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN ((old.proof_issuer_id IS NOT NULL OR new.proof_issuer_id IS NOT NULL) AND (old.proof_issuer_id IS DISTINCT FROM new.proof_issuer_id OR old.proof_subject IS DISTINCT FROM new.proof_subject OR old.proof_is_glob IS DISTINCT FROM new.proof_is_glob OR old.proof_claims IS DISTINCT FROM new.proof_claims OR old.revoked_at IS DISTINCT FROM new.revoked_at OR old.expires_at IS DISTINCT FROM new.expires_at)) EXECUTE FUNCTION feed_key_proof();
CREATE CONSTRAINT TRIGGER api_keys_feed_proof_gone AFTER DELETE ON api_keys DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (old.proof_issuer_id IS NOT NULL) EXECUTE FUNCTION feed_key_proof();
CREATE CONSTRAINT TRIGGER api_keys_feed_proof_new AFTER INSERT ON api_keys DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (new.proof_issuer_id IS NOT NULL) EXECUTE FUNCTION feed_key_proof();
CREATE TRIGGER audit_totals_added AFTER INSERT ON audit_seals REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION audit_totals_add();
CREATE TRIGGER audit_totals_gone AFTER DELETE ON audit_seals REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION audit_totals_subtract();
CREATE TRIGGER budgets_began_again AFTER UPDATE ON budgets FOR EACH ROW WHEN (old.epoch <> new.epoch) EXECUTE FUNCTION note_ended_budget();
CREATE TRIGGER budgets_deleted AFTER DELETE ON budgets FOR EACH ROW EXECUTE FUNCTION note_ended_budget();
CREATE CONSTRAINT TRIGGER budgets_feed AFTER INSERT OR DELETE OR UPDATE ON budgets DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION feed_budget();
CREATE TRIGGER budgets_feed_emptied AFTER TRUNCATE ON budgets FOR EACH STATEMENT EXECUTE FUNCTION feed_new_epoch();
CREATE CONSTRAINT TRIGGER ended_issuer_sessions_feed AFTER INSERT OR UPDATE ON ended_issuer_sessions DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION feed_ended_issuer_sessions();
CREATE TRIGGER ended_issuer_sessions_feed_emptied AFTER TRUNCATE ON ended_issuer_sessions FOR EACH STATEMENT EXECUTE FUNCTION feed_new_epoch();
CREATE CONSTRAINT TRIGGER issuer_keys_feed AFTER UPDATE ON issuer_keys DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (old.keys IS DISTINCT FROM new.keys OR old.fetched_at IS DISTINCT FROM new.fetched_at AND old.error IS NOT NULL) EXECUTE FUNCTION feed_issuer_keys();
CREATE CONSTRAINT TRIGGER issuer_keys_feed_new AFTER INSERT ON issuer_keys DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (new.keys IS NOT NULL) EXECUTE FUNCTION feed_issuer_keys();
CREATE CONSTRAINT TRIGGER issuers_feed AFTER INSERT OR DELETE OR UPDATE ON issuers DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION feed_issuer();
CREATE TRIGGER issuers_feed_emptied AFTER TRUNCATE ON issuers FOR EACH STATEMENT EXECUTE FUNCTION feed_new_epoch();
CREATE CONSTRAINT TRIGGER policies_feed AFTER INSERT OR DELETE OR UPDATE ON policies DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION feed_policy();
CREATE TRIGGER policies_feed_emptied AFTER TRUNCATE ON policies FOR EACH STATEMENT EXECUTE FUNCTION feed_new_epoch();
CREATE TRIGGER policies_hold_owner BEFORE INSERT OR DELETE OR UPDATE ON policies FOR EACH ROW EXECUTE FUNCTION rules_hold_owner();
CREATE TRIGGER policies_name AFTER INSERT OR UPDATE OF name, tenant_id ON policies FOR EACH ROW EXECUTE FUNCTION policies_check_name();
CREATE TRIGGER policies_octets BEFORE INSERT OR UPDATE ON policies FOR EACH ROW EXECUTE FUNCTION policies_count_octets();
CREATE TRIGGER policies_size AFTER INSERT OR UPDATE OF actions, resources, conditions ON policies FOR EACH ROW EXECUTE FUNCTION refuse_large_rules();
CREATE CONSTRAINT TRIGGER policy_roles_feed AFTER INSERT OR DELETE OR UPDATE ON policy_roles DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION feed_policy_role();
CREATE TRIGGER policy_roles_feed_emptied AFTER TRUNCATE ON policy_roles FOR EACH STATEMENT EXECUTE FUNCTION feed_new_epoch();
CREATE TRIGGER policy_roles_hold_owner BEFORE INSERT OR DELETE OR UPDATE ON policy_roles FOR EACH ROW EXECUTE FUNCTION policy_roles_hold_owner();
CREATE TRIGGER policy_roles_size AFTER INSERT ON policy_roles REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION refuse_many_attached_roles();
CREATE CONSTRAINT TRIGGER price_lists_feed AFTER INSERT OR DELETE OR UPDATE ON price_lists DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION feed_prices();
CREATE TRIGGER price_lists_feed_emptied AFTER TRUNCATE ON price_lists FOR EACH STATEMENT EXECUTE FUNCTION feed_new_epoch();
CREATE TRIGGER roles_deleted_name AFTER INSERT OR UPDATE OF tenant_id, name ON roles FOR EACH ROW EXECUTE FUNCTION roles_refuse_deleted_name();
CREATE CONSTRAINT TRIGGER roles_feed AFTER INSERT OR DELETE OR UPDATE ON roles DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION feed_role();
CREATE TRIGGER roles_feed_emptied AFTER TRUNCATE ON roles FOR EACH STATEMENT EXECUTE FUNCTION feed_new_epoch();
CREATE TRIGGER roles_hold_owner BEFORE INSERT OR DELETE OR UPDATE ON roles FOR EACH ROW EXECUTE FUNCTION rules_hold_owner();
CREATE TRIGGER roles_octets BEFORE INSERT OR UPDATE ON roles FOR EACH ROW EXECUTE FUNCTION roles_count_octets();
CREATE TRIGGER roles_size AFTER INSERT OR UPDATE OF permissions, resource_constraints ON roles FOR EACH ROW EXECUTE FUNCTION refuse_large_rules();
CREATE CONSTRAINT TRIGGER sessions_feed AFTER UPDATE ON sessions DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (old.id IS DISTINCT FROM new.id OR old.user_id IS DISTINCT FROM new.user_id OR old.ended_at IS DISTINCT FROM new.ended_at OR old.expires_at IS DISTINCT FROM new.expires_at) EXECUTE FUNCTION feed_session();
CREATE TRIGGER sessions_feed_emptied AFTER TRUNCATE ON sessions FOR EACH STATEMENT EXECUTE FUNCTION feed_new_epoch();
CREATE CONSTRAINT TRIGGER sessions_feed_gone AFTER DELETE ON sessions DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION feed_session();
CREATE CONSTRAINT TRIGGER signing_keys_feed AFTER INSERT OR DELETE OR UPDATE ON signing_keys DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION feed_signing_key();
CREATE TRIGGER signing_keys_feed_emptied AFTER TRUNCATE ON signing_keys FOR EACH STATEMENT EXECUTE FUNCTION feed_new_epoch();
CREATE CONSTRAINT TRIGGER tenants_feed AFTER INSERT OR DELETE OR UPDATE ON tenants DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION feed_tenant();
CREATE TRIGGER tenants_feed_emptied AFTER TRUNCATE ON tenants FOR EACH STATEMENT EXECUTE FUNCTION feed_new_epoch();
CREATE CONSTRAINT TRIGGER user_identities_feed AFTER INSERT OR DELETE OR UPDATE ON user_identities DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION feed_identity();
CREATE TRIGGER user_identities_feed_emptied AFTER TRUNCATE ON user_identities FOR EACH STATEMENT EXECUTE FUNCTION feed_new_epoch();
CREATE TRIGGER user_logins_fill BEFORE INSERT ON user_logins FOR EACH ROW WHEN (new.tenant_id IS NULL) EXECUTE FUNCTION user_logins_fill();
CREATE TRIGGER user_roles_collect_changed AFTER UPDATE ON user_roles REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION user_roles_collect();
CREATE TRIGGER user_roles_collect_gone AFTER DELETE ON user_roles REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION user_roles_collect();
CREATE TRIGGER user_roles_collect_new AFTER INSERT ON user_roles REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION user_roles_collect_new();
CREATE CONSTRAINT TRIGGER user_roles_feed AFTER UPDATE ON user_roles DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (old.user_id IS DISTINCT FROM new.user_id OR old.role_name IS DISTINCT FROM new.role_name OR old.source IS DISTINCT FROM new.source) EXECUTE FUNCTION feed_user_role();
CREATE TRIGGER user_roles_feed_emptied AFTER TRUNCATE ON user_roles FOR EACH STATEMENT EXECUTE FUNCTION feed_new_epoch();
CREATE CONSTRAINT TRIGGER user_roles_feed_new AFTER INSERT OR DELETE ON user_roles DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION feed_user_role();
CREATE TRIGGER user_roles_fill BEFORE INSERT ON user_roles FOR EACH ROW WHEN (new.tenant_id IS NULL OR new.status IS NULL) EXECUTE FUNCTION user_roles_fill();
CREATE TRIGGER user_roles_refill BEFORE UPDATE OF user_id ON user_roles FOR EACH ROW EXECUTE FUNCTION user_roles_fill();
CREATE TRIGGER users_deactivation BEFORE UPDATE ON users FOR EACH ROW WHEN (old.status IS DISTINCT FROM new.status) EXECUTE FUNCTION note_deactivation();
CREATE TRIGGER users_deactivation_new BEFORE INSERT ON users FOR EACH ROW WHEN (new.status = 'deactivated'::text) EXECUTE FUNCTION note_deactivation();
CREATE CONSTRAINT TRIGGER users_feed AFTER UPDATE ON users DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (old.id IS DISTINCT FROM new.id OR old.tenant_id IS DISTINCT FROM new.tenant_id OR old.status IS DISTINCT FROM new.status OR old.directory_suspension IS DISTINCT FROM new.directory_suspension) EXECUTE FUNCTION feed_user();
CREATE TRIGGER users_feed_emptied AFTER TRUNCATE ON users FOR EACH STATEMENT EXECUTE FUNCTION feed_new_epoch();
CREATE CONSTRAINT TRIGGER users_feed_gone AFTER DELETE ON users DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION feed_user();
CREATE CONSTRAINT TRIGGER users_feed_limits AFTER UPDATE ON users DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (old.rate_limits IS DISTINCT FROM new.rate_limits) EXECUTE FUNCTION feed_user();
CREATE TRIGGER users_made AFTER INSERT ON users FOR EACH ROW EXECUTE FUNCTION users_made();
CREATE TRIGGER users_spread AFTER UPDATE OF tenant_id, status ON users FOR EACH ROW WHEN (old.tenant_id IS DISTINCT FROM new.tenant_id OR old.status IS DISTINCT FROM new.status) EXECUTE FUNCTION users_spread();
