-- Additive: older servers call the functions that they know.
--
-- Holds for all budgets of a batch at once, and signs of life that wait for nothing. The rows that processes share stay locked until the
-- statement's end. A loop over a thousand budgets, or a wait for another statement of the same process after all windows of a batch, made
-- the statements of other processes wait beyond their timeouts.
--
-- Rows are locked in the order of their keys, as bookings lock them. If some do not exist yet, all are written in this order: to lock
-- the others first would be a different order. A connection keeps the plans, also those made while a table was nearly empty, so each row
-- is found by its key in a subquery, and written by `on conflict`: neither leaves the planner another join.

-- Takes the place of metering_lease_tokens, which only older servers call.
create function metering_hold_tokens(holder_id text, holder_turn bigint, tenants text[], periods text[], quotas bigint[],
  wants bigint[], sums bigint[], confirmed bigint[])
returns table (ask integer, given bigint, own bigint, used bigint, settled bigint) language plpgsql as $$
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
$$;

alter function metering_hold_tokens set enable_seqscan = off;

-- The process's statement for holds keeps the row locked while it waits for budgets. It is a sign of life itself.
create or replace function metering_beat(holder_id text) returns void language plpgsql as $$
begin
  perform metering_introduce(holder_id);
  update metering_holders m set seen_at = clock_timestamp()
  where m.ctid = any (array(
    select o.ctid from metering_holders o
    where o.id = holder_id and o.seen_at < clock_timestamp() - interval '1 second' for update skip locked));
end
$$;
alter function metering_beat set enable_seqscan = off;

-- Makes the process known, so that none of its reservations is unknown. To insert a row that is being changed would wait.
create function metering_introduce(holder_id text) returns void language sql as $$
  insert into metering_holders (id) select holder_id where not exists (select from metering_holders m where m.id = holder_id)
  on conflict do nothing
$$;
alter function metering_introduce set enable_seqscan = off;
