-- Additive: older servers send no events. What they write to the audit log, newer servers announce.

-- Addresses that a tenant's events are sent to.
create table webhooks (
  id text primary key,
  tenant_id text not null references tenants (id) on delete cascade,
  url text not null,
  -- Names of events, or patterns.
  events text[] not null,
  description text,
  enabled boolean not null default true,
  -- Why the server disabled it. Null: it did not.
  disabled_reason text,
  -- The key of the signatures, sealed under `secret-key`.
  secret_sealed bytea not null,
  -- The former key, which signs as well until the time.
  previous_sealed bytea,
  previous_until timestamptz,
  -- Events that were left out because too many deliveries waited.
  dropped bigint not null default 0,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create unique index webhooks_by_url on webhooks (tenant_id, url);

-- Events to send and sent ones, one row for each webhook.
create table webhook_deliveries (
  id text primary key,
  webhook_id text not null references webhooks (id) on delete cascade,
  type text not null,
  -- The JSON of the request, as it is signed.
  body text not null,
  state text not null default 'waiting' check (state in ('waiting', 'delivered', 'failed')),
  created_at timestamptz not null default clock_timestamp(),
  -- The attempts end a day after this time.
  waiting_since timestamptz not null default clock_timestamp(),
  -- While an attempt runs: when another process may take it over. Null: no attempt is due any more.
  next_attempt_at timestamptz default clock_timestamp(),
  attempted_at timestamptz,
  attempts integer not null default 0,
  -- The last answer, and why the last attempt failed.
  status integer,
  answer text,
  error text
);
create index webhook_deliveries_by_webhook on webhook_deliveries (webhook_id, id);
create index webhook_deliveries_due on webhook_deliveries (webhook_id, next_attempt_at) where state = 'waiting';
create index webhook_deliveries_by_age on webhook_deliveries (created_at);

-- The place in the audit log up to which its rows became deliveries.
create table webhook_cursor (
  only_row boolean primary key default true check (only_row),
  seal bigint not null default 0,
  row_id bigint not null default 0,
  hash text not null default ''
);
-- Events begin with the first seal after the upgrade.
insert into webhook_cursor (seal, row_id, hash)
  select coalesce(max(seq), 0), coalesce(max(last), 0), coalesce(max(digits), '')
  from (
    select seq, (select max(id) from unnest(row_ids) id) as last, left(encode(hash, 'hex'), 16) as digits
    from audit_seals order by seq desc limit 1
  ) newest;

-- For each time before the end of a key: the keys up to this place are announced.
create table key_end_cursors (
  days integer primary key,
  ends_before timestamptz not null,
  key_id text not null default ''
);
insert into key_end_cursors (days, ends_before)
  select days, now() + make_interval(days => days) from unnest(array[14, 7, 1, 0]) days;

-- The end of the lock that the audit log names.
alter table login_failures add column announced_until timestamptz;

-- The time of the last good keys, or of the issuer's creation, for which the audit log says that the keys are stale.
alter table issuer_keys add column stale_announced_for timestamptz;
