-- Additive: older servers neither enforce budgets nor limits by model, and book usage without its cost.

-- Limits of what the callers of a tenant may spend in a period.
create table budgets (
  id text primary key,
  tenant_id text not null references tenants (id) on delete cascade,
  name text not null,
  unit text not null check (unit in ('money', 'tokens', 'requests')),
  -- Of money: in 10^-9 of the currency.
  limit_amount bigint not null check (limit_amount between 0 and 9007199254740991),
  period text not null check (period in ('hour', 'day', 'week', 'month', 'total')),
  -- Null: the tenant's.
  timezone text,
  applies_to jsonb not null,
  per text not null default 'all' check (per in ('all', 'key', 'user')),
  -- Globs. Null: all models, and requests without one.
  models text[],
  action text not null default 'block' check (action in ('block', 'report')),
  -- Fractions of the limit.
  alerts jsonb not null default '[]',
  enabled boolean not null default true,
  -- Grows when a new amount begins: after a reset, and after a change of the unit, the period or the time zone.
  epoch integer not null default 0,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- Of the record, for its piece of the tenant's rules.
  octets integer generated always as (200 + octet_length(name) + octet_length(applies_to::text) + 64 * coalesce(cardinality(models), 0)) stored
);
create unique index budgets_by_name on budgets (tenant_id, name);

create function feed_budget() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    perform feed_append('tenant', old.tenant_id);
  end if;
  if tg_op <> 'DELETE' then
    perform feed_append('tenant', new.tenant_id);
  end if;
  return null;
end
$$;
create constraint trigger budgets_feed after insert or update or delete on budgets deferrable initially deferred
  for each row execute function feed_budget();
create trigger budgets_feed_emptied after truncate on budgets for each statement execute function feed_new_epoch();

-- What counts in a budget is in `token_budgets` and `token_holds`, as what counts in the monthly tokens of the tenant is.
-- The `period` of such a row names the budget, the caller whose amount it is, the period and the epoch.

-- Reached fractions of limits. Each is announced once in its period.
create table budget_alerts (
  id bigint generated always as identity primary key,
  tenant_id text not null,
  -- Null: the monthly tokens of the tenant.
  budget_id text references budgets (id) on delete cascade,
  -- As in `token_budgets`.
  period text not null,
  threshold double precision not null,
  spent bigint not null,
  limit_amount bigint not null,
  made_at timestamptz not null default clock_timestamp(),
  -- Null: not yet in the audit log.
  announced_at timestamptz,
  unique (tenant_id, period, threshold)
);
create index budget_alerts_waiting on budget_alerts (id) where announced_at is null;

-- The prices of models. The newest list is in force.
create table price_lists (
  version integer primary key,
  -- Amounts as integers, in 10^-9 of the currency for 10^6 tokens.
  prices jsonb not null,
  set_at timestamptz not null default now()
);

create function feed_prices() returns trigger language plpgsql as $$
begin
  perform feed_append('prices', '');
  return null;
end
$$;
create constraint trigger price_lists_feed after insert or update or delete on price_lists deferrable initially deferred
  for each row execute function feed_prices();
create trigger price_lists_feed_emptied after truncate on price_lists for each statement execute function feed_new_epoch();

alter table changes drop constraint changes_kind_check;
alter table changes add constraint changes_kind_check
  check (kind in ('key', 'user', 'session', 'tenant', 'global', 'signing_keys', 'issuer', 'link', 'prices'));

-- What usage cost, in 10^-9 of the currency.
alter table usage_daily add column cost bigint not null default 0;
alter table usage_by_model add column cost bigint not null default 0;
alter table usage_by_month add column cost bigint not null default 0;

-- Usage with a price, by the version of the list that had it. The rest of `usage_by_model` had no price.
create table usage_by_price (
  tenant_id text not null,
  day date not null,
  model text not null,
  price_version integer not null,
  requests bigint not null default 0,
  total_tokens bigint not null default 0,
  cost bigint not null default 0,
  primary key (tenant_id, day, model, price_version)
) with (fillfactor = 50);
create index usage_by_price_by_day on usage_by_price (day);

-- Limits by model.
alter table api_keys add column rate_limits jsonb;
alter table users add column rate_limits jsonb;

-- Gates read these members as well.
create constraint trigger api_keys_feed_limits after update on api_keys deferrable initially deferred for each row
  when (old.rate_limits is distinct from new.rate_limits or old.metadata is distinct from new.metadata)
  execute function feed_key();
create constraint trigger users_feed_limits after update on users deferrable initially deferred for each row
  when (old.rate_limits is distinct from new.rate_limits) execute function feed_user();
