-- Usage as it is read, and as platforms tell of it that meter themselves.
--
-- Locks: usage_events comes before usage_daily, usage_by_model between it and token_budgets.

-- Reading -----------------------------------------------------------------------------------------------------------------------

-- The months since the year 0.
create function usage_month(day date) returns integer language sql immutable parallel safe as $$
  select (extract(year from day) * 12 + extract(month from day))::integer
$$;

-- A tenant may have a hundred thousand keys: a page of them, or of users, reads no others. In the order of bytes, as pages are.
create index usage_daily_by_key on usage_daily (tenant_id, usage_month(day), (key_id collate "C"));
create index usage_daily_by_user on usage_daily (tenant_id, usage_month(day), (user_id collate "C"));
create index usage_daily_by_any_key on usage_daily (usage_month(day), (key_id collate "C"));
create index usage_daily_by_any_user on usage_daily (usage_month(day), (user_id collate "C"));

-- What usage_daily has, keys and users left out: totals, models and days are read here, however many keys there are.
create table usage_by_model (
  tenant_id text not null,
  day date not null,
  model text not null,
  requests bigint not null default 0,
  prompt_tokens bigint not null default 0,
  completion_tokens bigint not null default 0,
  cached_tokens bigint not null default 0,
  total_tokens bigint not null default 0,
  estimated_tokens bigint not null default 0,
  primary key (tenant_id, day, model)
) with (fillfactor = 50);
create index usage_by_model_by_day on usage_by_model (day);

insert into usage_by_model
select tenant_id, day, model, sum(requests), sum(prompt_tokens), sum(completion_tokens), sum(cached_tokens), sum(total_tokens),
  sum(estimated_tokens)
from usage_daily group by 1, 2, 3;

-- Booking -----------------------------------------------------------------------------------------------------------------------

-- How many requests an entry stands for; null = one.
alter type metering_entry add attribute requests bigint;

-- Adds to usage and to what is spent. Whoever calls it has made sure that each entry comes once.
create or replace function metering_book(entries metering_entry[]) returns void language sql as $$
  insert into usage_daily as u (tenant_id, day, model, key_id, user_id, requests, prompt_tokens, completion_tokens, cached_tokens,
    total_tokens, estimated_tokens)
  select e.tenant_id, e.day, e.model, e.key_id, e.user_id, sum(coalesce(e.requests, 1)), sum(e.prompt_tokens), sum(e.completion_tokens),
    sum(e.cached_tokens), sum(e.total_tokens), sum(case when e.estimated then e.total_tokens else 0 end)
  from unnest(entries) e where e.books
  group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5
  on conflict (tenant_id, day, model, key_id, user_id) do update set
    requests = u.requests + excluded.requests,
    prompt_tokens = u.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = u.completion_tokens + excluded.completion_tokens,
    cached_tokens = u.cached_tokens + excluded.cached_tokens,
    total_tokens = u.total_tokens + excluded.total_tokens,
    estimated_tokens = u.estimated_tokens + excluded.estimated_tokens;
  insert into usage_by_model as u (tenant_id, day, model, requests, prompt_tokens, completion_tokens, cached_tokens, total_tokens,
    estimated_tokens)
  select e.tenant_id, e.day, e.model, sum(coalesce(e.requests, 1)), sum(e.prompt_tokens), sum(e.completion_tokens),
    sum(e.cached_tokens), sum(e.total_tokens), sum(case when e.estimated then e.total_tokens else 0 end)
  from unnest(entries) e where e.books
  group by 1, 2, 3 order by 1, 2, 3
  on conflict (tenant_id, day, model) do update set
    requests = u.requests + excluded.requests,
    prompt_tokens = u.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = u.completion_tokens + excluded.completion_tokens,
    cached_tokens = u.cached_tokens + excluded.cached_tokens,
    total_tokens = u.total_tokens + excluded.total_tokens,
    estimated_tokens = u.estimated_tokens + excluded.estimated_tokens;
  insert into token_budgets as b (tenant_id, period, spent)
  select e.tenant_id, e.period, sum(e.total_tokens) from unnest(entries) e where e.books
  group by 1, 2 having sum(e.total_tokens) > 0 order by 1, 2
  on conflict (tenant_id, period) do update set spent = b.spent + excluded.spent;
$$;

-- Events ------------------------------------------------------------------------------------------------------------------------

-- Events that were booked, so that none is twice.
create table usage_events (
  tenant_id text not null,
  -- As the platform calls it.
  id text not null,
  -- When it happened. Long after it nobody can send it again, and the row goes.
  time timestamptz not null,
  primary key (tenant_id, id)
);
create index usage_events_by_time on usage_events (time);
