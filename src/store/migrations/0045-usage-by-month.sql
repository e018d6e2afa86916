-- Additive: the usage of each key and user by month. Older servers book it through the same function, and page through the days, whose
-- indexes by month stay for them.
--
-- A list of keys or users by their usage sums all of them. A month has one row for each key here, and one for each key, day and model in
-- usage_daily: a sum over 40,000 keys reads 40,000 rows in place of a million.
--
-- Locks: after usage_by_model, in the order of the primary key.
create table usage_by_month (
  tenant_id text not null,
  -- The first day.
  month date not null,
  -- In the order of bytes, as pages are.
  key_id text not null collate "C",
  user_id text not null collate "C",
  requests bigint not null default 0,
  prompt_tokens bigint not null default 0,
  completion_tokens bigint not null default 0,
  cached_tokens bigint not null default 0,
  total_tokens bigint not null default 0,
  estimated_tokens bigint not null default 0,
  primary key (tenant_id, month, key_id, user_id)
) with (fillfactor = 70);

-- No booking runs between the sums of the past and the new function.
lock table usage_daily in share mode;
insert into usage_by_month (tenant_id, month, key_id, user_id, requests, prompt_tokens, completion_tokens, cached_tokens, total_tokens,
  estimated_tokens)
select tenant_id, cast(date_trunc('month', day) as date), key_id, user_id, sum(requests), sum(prompt_tokens), sum(completion_tokens),
  sum(cached_tokens), sum(total_tokens), sum(estimated_tokens)
from usage_daily group by 1, 2, 3, 4;

create index usage_by_month_by_user on usage_by_month (tenant_id, month, user_id);
create index usage_by_month_by_any_key on usage_by_month (month, key_id);
create index usage_by_month_by_any_user on usage_by_month (month, user_id);
-- Days of all tenants.
create index usage_daily_by_day on usage_daily (day);

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
  insert into usage_by_model as u (tenant_id, day, model, requests, prompt_tokens, completion_tokens, cached_tokens,
    total_tokens, estimated_tokens)
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
  insert into usage_by_month as u (tenant_id, month, key_id, user_id, requests, prompt_tokens, completion_tokens, cached_tokens,
    total_tokens, estimated_tokens)
  select e.tenant_id, cast(date_trunc('month', e.day) as date), e.key_id, e.user_id, sum(coalesce(e.requests, 1)), sum(e.prompt_tokens), sum(e.completion_tokens),
    sum(e.cached_tokens), sum(e.total_tokens), sum(case when e.estimated then e.total_tokens else 0 end)
  from unnest(entries) e where e.books
  group by 1, 2, 3, 4 order by 1, 2, 3, 4
  on conflict (tenant_id, month, key_id, user_id) do update set
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

-- Denials are few among the decisions, so the most denied tenants are found without the rows of the others.
create index decision_counts_of_denials on decision_counts (minute) where code not in ('allow', 'public', 'unavailable');
