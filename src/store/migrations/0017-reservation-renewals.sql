-- Reservations live for seconds and are renewed while their requests run. Any process may hear that a request is still running; its
-- reservation is held by the process that admitted it, or, for a collection, by a row here.

-- Renewals that a process heard of for another one, which takes them with its next statement on token holds. Envoy repeats them, so
-- nothing is lost if a crash of the database empties the table.
create unlogged table reservation_renewals (
  id bigint generated always as identity primary key,
  holder text not null,
  counters bigint[] not null,
  heard_at timestamptz not null default clock_timestamp()
);
create index reservation_renewals_by_holder on reservation_renewals (holder, id);
create index reservation_renewals_by_age on reservation_renewals (heard_at);

-- Renews and releases reservations. A reservation of a collection that expired is not revived: another creation may have its place.
create function metering_change_reservations(kinds text[], holders text[], numbers bigint[], ttl_ms double precision)
returns void language plpgsql as $$
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
$$;

-- As before, and renewals that their holder did not take.
create or replace function metering_tidy(
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
  delete from reservation_renewals n where n.id = any (array(
    select r.id from reservation_renewals r where r.heard_at < moment - hold_ttl_ms * interval '1 millisecond'
    order by r.heard_at limit most for update skip locked));
  delete from metering_holders m where m.ctid = any (array(
    select r.ctid from metering_holders r
    where r.seen_at < moment - keep and not exists (select from token_holds t where t.holder = r.id)
    limit most for update skip locked));
  get diagnostics holders = row_count;
end
$$;
