-- Limits and usage. Every process that admits requests is a holder: it leases shares of rates and of token budgets ahead of need, and any
-- process books what a request spent, once.
--
-- Locks are taken in one order everywhere, so that no two statements wait for each other: a holder's row, settlements, usage_daily,
-- usage_by_model, rate_windows or token_budgets, token_holds, collection_counts, collection_reservations; within a table in the order
-- of its key.
-- Functions, because each of their statements sees what was committed before it: a sum read after a lock was had is never an old one.

-- Holders -----------------------------------------------------------------------------------------------------------------------

create table metering_holders (
  id text primary key,
  seen_at timestamptz not null default clock_timestamp(),
  -- Of the last statement on its token holds: one that comes late, after its holder gave it up, must do nothing.
  turn bigint not null default 0
) with (fillfactor = 50);

create function metering_beat(holder_id text) returns void language plpgsql as $$
begin
  update metering_holders set seen_at = clock_timestamp()
  where id = holder_id and seen_at < clock_timestamp() - interval '1 second';
  if not found then
    insert into metering_holders (id) values (holder_id) on conflict do nothing;
  end if;
end
$$;

-- How many processes share the limits now.
create function metering_live_holders() returns integer language sql volatile as $$
  select greatest(1, count(*))::integer from metering_holders where seen_at > clock_timestamp() - interval '15 seconds'
$$;

-- Rates -------------------------------------------------------------------------------------------------------------------------

create table rate_windows (
  subject text not null,
  -- Milliseconds since the epoch, divided by the window's length, rounded down.
  number bigint not null,
  granted bigint not null default 0,
  made_at timestamptz not null default clock_timestamp(),
  primary key (subject, number)
)
-- Each row is changed often and soon gone.
with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create index rate_windows_by_age on rate_windows (made_at);

-- Grants of each window what is left of its limit, at most what is wanted. A change counts first, whatever the limit: what was admitted
-- without a lease, or, negative, what is given back.
create function metering_lease_rates(subjects text[], numbers bigint[], limits bigint[], wants bigint[], changes bigint[])
returns table (ask integer, given bigint, total bigint) language plpgsql as $$
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
$$;

-- Token budgets -----------------------------------------------------------------------------------------------------------------

create table token_budgets (
  tenant_id text not null,
  -- The calendar month in the tenant's time zone: 2026-11
  period text not null,
  spent bigint not null default 0,
  -- The sum of its holds.
  held bigint not null default 0,
  primary key (tenant_id, period)
) with (fillfactor = 50);

-- What a holder may reserve for requests, and has reserved for those under way.
create table token_holds (
  tenant_id text not null,
  period text not null,
  holder text not null,
  held bigint not null,
  -- The sum of the changes that its holder told of, so that one told twice, because an answer was lost, counts once.
  changes bigint not null,
  primary key (tenant_id, period, holder)
) with (fillfactor = 50);

-- Grants of each budget what is neither spent nor held, at most what is wanted. The holder's changes count first, whatever the quota:
-- what it reserved without a hold, what it gives back, what was spent of its hold. They are told as a sum; where it holds nothing, what
-- was added to the sum that was confirmed to it counts: nothing can be taken off then, and its next words put the rest right.
create function metering_lease_tokens(holder_id text, holder_turn bigint, tenants text[], periods text[], quotas bigint[],
  wants bigint[], sums bigint[], confirmed bigint[])
returns table (ask integer, given bigint, own bigint, used bigint, settled bigint) language plpgsql as $$
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
$$;

-- Takes away the holds of holders that were not seen for so long, and answers how many.
create function metering_expire_holds(unseen_ms double precision, most integer) returns integer language plpgsql as $$
declare
  unseen interval := unseen_ms * interval '1 millisecond';
  h record;
  gone bigint;
  removed integer := 0;
begin
  for h in
    select t.tenant_id, t.period, t.holder from token_holds t left join metering_holders m on m.id = t.holder
    where m.id is null or m.seen_at < clock_timestamp() - unseen
    order by t.tenant_id, t.period, t.holder limit most
  loop
    perform from token_budgets t where t.tenant_id = h.tenant_id and t.period = h.period for update;
    delete from token_holds t
    where t.tenant_id = h.tenant_id and t.period = h.period and t.holder = h.holder
      and not exists (select from metering_holders m where m.id = h.holder and m.seen_at >= clock_timestamp() - unseen)
    returning t.held into gone;
    if found then
      update token_budgets t set held = t.held - gone where t.tenant_id = h.tenant_id and t.period = h.period;
      removed := removed + 1;
    end if;
  end loop;
  return removed;
end
$$;

-- Usage -------------------------------------------------------------------------------------------------------------------------

create table usage_daily (
  tenant_id text not null,
  -- In the tenant's time zone, when the request was checked.
  day date not null,
  -- Empty = none.
  model text not null,
  key_id text not null,
  user_id text not null,
  requests bigint not null default 0,
  prompt_tokens bigint not null default 0,
  completion_tokens bigint not null default 0,
  -- Of the prompt's.
  cached_tokens bigint not null default 0,
  total_tokens bigint not null default 0,
  -- Of the total: not measured but reckoned by rule.
  estimated_tokens bigint not null default 0,
  primary key (tenant_id, day, model, key_id, user_id)
) with (fillfactor = 70);

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

-- What is to be booked: a request, or of an event several. Members as in the tables above.
create type metering_entry as (
  -- Its place in the batch.
  n integer,
  -- Who issued its reservation, and under which number.
  holder text,
  counter bigint,
  -- Whether its issuer holds tokens for it.
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
  -- False where another source counts the tenant's usage.
  books boolean,
  -- 1: it made a collection, -1: it removed one, null: it had nothing to do with any.
  collections integer,
  -- How many requests it stands for; null = one.
  requests bigint
);

-- Adds to usage and to what is spent. Whoever calls it has made sure that each entry comes once.
create function metering_book(entries metering_entry[]) returns void language sql as $$
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

-- Collections -------------------------------------------------------------------------------------------------------------------

create table collection_counts (
  tenant_id text primary key,
  count bigint not null default 0
) with (fillfactor = 50);

-- Creations that were admitted and not answered yet.
create table collection_reservations (
  holder text not null,
  counter bigint not null,
  tenant_id text not null,
  expires_at timestamptz not null,
  primary key (holder, counter)
);
create index collection_reservations_by_tenant on collection_reservations (tenant_id, expires_at);
create index collection_reservations_by_expiry on collection_reservations (expires_at);

-- Answers how many there are, those being made included; the row is locked to the end of the transaction.
create function metering_lock_collections(tenant text) returns bigint language plpgsql as $$
declare
  present bigint;
begin
  insert into collection_counts as c (tenant_id) values (tenant)
  on conflict (tenant_id) do update set count = c.count
  returning c.count into present;
  return present
    + (select count(*) from collection_reservations r where r.tenant_id = tenant and r.expires_at > clock_timestamp());
end
$$;

create function metering_reserve_collection(
  holder_id text, number bigint, tenant text, most bigint, ttl_ms double precision, out reserved boolean, out present bigint)
language plpgsql as $$
begin
  present := metering_lock_collections(tenant);
  reserved := present < most;
  if reserved then
    insert into collection_reservations (holder, counter, tenant_id, expires_at)
    values (holder_id, number, tenant, clock_timestamp() + ttl_ms * interval '1 millisecond');
  end if;
end
$$;

-- What became of creations and removals: reservations go, counts follow.
create function metering_count_collections(entries metering_entry[], fresh integer[]) returns void language plpgsql as $$
declare
  c record;
begin
  for c in
    select e.tenant_id, coalesce(sum(e.collections) filter (where e.n = any (fresh)), 0) as change
    from unnest(entries) e where e.collections is not null group by 1 order by 1
  loop
    perform metering_lock_collections(c.tenant_id);
    update collection_counts t set count = greatest(0, t.count + c.change) where t.tenant_id = c.tenant_id and c.change <> 0;
  end loop;
  delete from collection_reservations r using unnest(entries) e
  where e.collections is not null and r.holder = e.holder and r.counter = e.counter;
end
$$;

-- Settlements -------------------------------------------------------------------------------------------------------------------

-- Which reservations were settled: a bit for each, 1024 numbers of one holder to a row.
create table settlements (
  holder text not null,
  block bigint not null,
  bits bytea not null,
  settled_at timestamptz not null default clock_timestamp(),
  primary key (holder, block)
) with (fillfactor = 50);
create index settlements_by_time on settlements (settled_at);

-- For a holder whose requests' ends another process heard of.
create table settlement_news (
  id bigint generated always as identity primary key,
  holder text not null,
  counters bigint[] not null,
  -- What each spent.
  totals bigint[] not null
);
create index settlement_news_by_holder on settlement_news (holder, id);

-- Books each entry whose reservation a known holder issued and nobody settled before. Answers how many that were, and how many
-- nobody known issued.
create function metering_settle(settler text, entries jsonb, out booked integer, out unknown integer) language plpgsql as $$
declare
  items metering_entry[];
  fresh integer[] := '{}';
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
  perform metering_book((select coalesce(array_agg(e), '{}') from unnest(items) e where e.n = any (fresh)));
  perform metering_count_collections(items, fresh);
  insert into settlement_news (holder, counters, totals)
  select e.holder, array_agg(e.counter order by e.n), array_agg(e.total_tokens order by e.n) from unnest(items) e
  where e.held and e.holder <> settler and e.n = any (fresh)
  group by 1 order by 1;
  booked := cardinality(fresh);
end
$$;

-- Upkeep ------------------------------------------------------------------------------------------------------------------------

-- Takes away what nobody will ask for again, in a bounded batch; nothing while another process is at it. Rows that are locked are left
-- for the next time.
create function metering_tidy(
  window_keep_ms double precision, hold_ttl_ms double precision, settlement_keep_ms double precision, most integer,
  out windows integer, out holds integer, out creations integer, out blocks integer, out holders integer)
language plpgsql as $$
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
  delete from metering_holders m where m.ctid = any (array(
    select r.ctid from metering_holders r
    where r.seen_at < moment - keep and not exists (select from token_holds t where t.holder = r.id)
    limit most for update skip locked));
  get diagnostics holders = row_count;
end
$$;
