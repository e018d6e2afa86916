-- Additive: older servers book usage without its cost and without budgets, through the same functions.
--
-- A settlement is booked to the counter of each budget that counts it, in the statement that books its usage.
--
-- Locks are taken in one order everywhere: a holder's row, settlements, pending_responses, usage_daily, usage_by_model, usage_by_month,
-- usage_by_price, rate_windows or token_budgets, budgets, budget_alerts, token_holds, collection_counts, collection_reservations;
-- within a table in the order of its key.

-- Counters ----------------------------------------------------------------------------------------------------------------------

-- All counters of one period of a budget have the same: 'bud_1/key_1 2026-11#0' and 'bud_1 2026-11#0' give 'bud_1#0 2026-11'.
create function metering_budget_period(period text) returns text language sql immutable parallel safe as $$
  select split_part(split_part(period, ' ', 1), '/', 1) || '#' || split_part(period, '#', 2) || ' '
    || split_part(split_part(period, ' ', 2), '#', 1)
$$;

-- The day after which no process needs the counter of the period. Null: kept.
create function metering_kept_until(period text) returns date language plpgsql immutable parallel safe as $$
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
$$;

create index token_budgets_by_budget on token_budgets (metering_budget_period(period) collate "C") where starts_with(period, 'bud_');
create index token_budgets_by_age on token_budgets (metering_kept_until(period)) where metering_kept_until(period) is not null;
-- Places of parallel requests. Their counters have no period.
create index token_budgets_of_places on token_budgets (tenant_id collate "C") where starts_with(period, 'parallel ');
-- In an order of its own: a plan that was made for an empty table must not take it in place of the primary key.
create index token_holds_by_holder on token_holds (holder collate "C");

-- Budgets that were deleted, and amounts that were followed by a new one.
create table ended_budgets (
  budget_id text not null,
  epoch integer not null,
  ended_at timestamptz not null default clock_timestamp()
);
create index ended_budgets_by_time on ended_budgets (ended_at);

create function note_ended_budget() returns trigger language plpgsql as $$
begin
  insert into ended_budgets (budget_id, epoch) values (old.id, old.epoch);
  return null;
end
$$;
create trigger budgets_deleted after delete on budgets for each row execute function note_ended_budget();
create trigger budgets_began_again after update on budgets for each row when (old.epoch <> new.epoch)
  execute function note_ended_budget();

create index budget_alerts_by_budget on budget_alerts (budget_id) where budget_id is not null;

-- Bookings ----------------------------------------------------------------------------------------------------------------------

alter type metering_entry add attribute cost bigint;
alter type metering_entry add attribute price_version integer;
-- The price of a response that is not complete: version, input, output, cached input and cache write, in 10^-9 of the currency for 10^6 tokens.
alter type metering_entry add attribute price bigint[];
alter type metering_entry add attribute cache_write_tokens bigint;
-- Each is the unit (m, t or r) and the period of a counter.
alter type metering_entry add attribute charges text[];

alter table settlement_news add column costs bigint[];

-- As they were booked.
alter table pending_responses add column cost bigint not null default 0;
alter table pending_responses add column price bigint[];
alter table pending_responses add column charges text[];

-- The cost in 10^-9 of the currency, rounded up. Tokens beyond the prompt and the completion cost as much as input.
create function metering_cost(price bigint[], prompt bigint, completion bigint, cached bigint, cache_write bigint, total bigint)
returns bigint language plpgsql immutable parallel safe as $$
declare
  from_cache bigint := least(prompt, cached);
  to_cache bigint := least(prompt - from_cache, coalesce(cache_write, 0));
begin
  return case when price is null then 0 else least(9007199254740991, div(
    cast(prompt - from_cache - to_cache + greatest(0, total - prompt - completion) as numeric) * price[2]
      + cast(completion as numeric) * price[3] + cast(from_cache as numeric) * price[4] + cast(to_cache as numeric) * price[5] + 999999,
    1000000)) end;
end
$$;

-- Notes the fractions of limits that the counters have reached: of the tenant's monthly tokens, and of budgets. Each once, so none for
-- a counter whose alerts may have been removed with it.
create function metering_note_alerts(tenants text[], periods text[], amounts bigint[]) returns void language plpgsql as $$
declare
  reached record;
begin
  for reached in
    select c.tenant_id, b.id as budget_id, c.period, a.threshold, c.spent, b.limit_amount
    from unnest(tenants, periods, amounts) as c(tenant_id, period, spent)
    -- Found by its id, never by the index of the tenant's names.
    join budgets b on b.id = split_part(split_part(c.period, ' ', 1), '/', 1) and b.tenant_id collate "C" = c.tenant_id and b.enabled
      and b.alerts <> '[]' and cast(b.epoch as text) = split_part(c.period, '#', 2)
    cross join lateral (select cast(value as numeric) as threshold from jsonb_array_elements(b.alerts)) a
    where c.spent >= a.threshold * b.limit_amount and coalesce(metering_kept_until(c.period) >= current_date, true)
      and not exists (select from budget_alerts o where o.tenant_id = c.tenant_id and o.period = c.period and o.threshold = a.threshold)
    union all
    select c.tenant_id, null, c.period, a.threshold, c.spent, q.quota
    from unnest(tenants, periods, amounts) as c(tenant_id, period, spent)
    join tenants t on t.id = c.tenant_id and c.period ~ '^[0-9]{4}-[0-9]{2}$'
    cross join lateral (select cast(cast(t.quotas ->> 'monthly_tokens' as numeric) as bigint) as quota) q
    cross join unnest(array[0.8, 1]) as a(threshold)
    where c.spent >= a.threshold * q.quota and coalesce(metering_kept_until(c.period) >= current_date, true)
      and not exists (select from budget_alerts o where o.tenant_id = c.tenant_id and o.period = c.period and o.threshold = a.threshold)
    order by 1, 3, 4
  loop
    -- A concurrent deletion of the budget would otherwise fail the booking.
    if reached.budget_id is null or exists (select from budgets b where b.id = reached.budget_id for key share) then
      insert into budget_alerts (tenant_id, budget_id, period, threshold, spent, limit_amount)
      values (reached.tenant_id, reached.budget_id, reached.period, reached.threshold, reached.spent, reached.limit_amount)
      on conflict do nothing;
    end if;
  end loop;
end
$$;
alter function metering_note_alerts set enable_seqscan = off;

-- Adds to the counters of the tenant's months and of budgets. A correction may subtract.
create function metering_charge(entries metering_entry[]) returns void language plpgsql as $$
declare
  tenants text[];
  periods text[];
  amounts bigint[];
begin
  with counted as (
    select e.tenant_id, e.period, e.total_tokens as amount from unnest(entries) e where e.books
    union all
    select e.tenant_id, substr(c.word, 2), case left(c.word, 1) when 'm' then e.cost when 't' then e.total_tokens else coalesce(e.requests, 1) end
    from unnest(entries) e cross join unnest(e.charges) as c(word) where e.books
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
$$;
alter function metering_charge set enable_seqscan = off;

-- As before, and what it cost. A sum of costs stays within its type, so that no amount fails a booking.
create or replace function metering_book(entries metering_entry[]) returns void language plpgsql as $$
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
$$;
alter function metering_book set enable_seqscan = off;

-- Takes the place of metering_pending_responses, which nothing calls any more. A correction costs what the price of the booking makes
-- of its tokens.
create function metering_correct_responses(entries metering_entry[]) returns metering_entry[] language plpgsql as $$
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
$$;
alter function metering_correct_responses set enable_seqscan = off;

-- As before, and with costs. Corrections are booked together with the rest, so that all rows are locked in the order of their keys.
create or replace function metering_settle(settler text, entries jsonb, out booked integer, out unknown integer) language plpgsql as $$
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
$$;
alter function metering_settle(text, jsonb) set enable_seqscan = off;

-- Upkeep ------------------------------------------------------------------------------------------------------------------------

-- Returns the holds of holders that were not seen for so long. A holder that is seen again waits here, and then has none.
create function metering_release_lost_holds(unseen_ms double precision, most integer) returns integer language plpgsql as $$
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
$$;
alter function metering_release_lost_holds set enable_seqscan = off;

-- As before, without reading all holds.
create or replace function metering_expire_holds(unseen_ms double precision, most integer) returns integer language sql as $$
  select metering_release_lost_holds(unseen_ms, most)
$$;

-- Removes counters that no request can be booked to any more, with their alerts: old ones, and those of budgets that ended 8 days ago. A
-- response that continues is corrected within 7 days. Also removes counters of places while no process holds any.
create function metering_tidy_counters(most integer) returns integer language plpgsql as $$
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
$$;
alter function metering_tidy_counters set enable_seqscan = off;
