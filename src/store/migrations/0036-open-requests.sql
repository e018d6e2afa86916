-- Additive: older servers note no requests, and their tidying leaves the notes.

-- Requests under way, as the process that admitted them noted them last. If that process dies, another process books them with the
-- prompt's estimate, unless the end of the request is known or the request is still running.

-- A note holds requests that began within the same half second. It goes when none of them is under way. Unlogged: processes outlive a
-- crash of the database, and note what begins after it.
create unlogged table open_requests (
  holder text not null,
  -- Numbers of one holder, larger each time.
  note bigint not null,
  -- An array of metering_entry.
  entries jsonb not null,
  noted_at timestamptz not null default clock_timestamp(),
  -- When a request of it was last found to be running after the death of its holder.
  looked_at timestamptz,
  primary key (holder, note)
);

-- Books one note of a holder that was not seen for so long, and returns how many requests were booked; null if there is no such note.
-- A settlement books each reservation once, also if several processes know its end. Requests that were renewed within the time that a reservation lives
-- stay noted. One note in one transaction: the rows of settlements are locked in the order of their keys.
create function metering_book_lost(
  hold_ttl_ms double precision, reservation_ttl_ms double precision, settlement_keep_ms double precision)
returns integer language plpgsql as $$
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
$$;
alter function metering_book_lost(double precision, double precision, double precision) set enable_seqscan = off;
