-- Additive: older servers do not use the new functions, and feed_position returns what it did.

-- A connection keeps the plan that it made when the feed was nearly empty. Without the setting, that plan reads the whole feed,
-- which is long after a change of many rows. Each of these functions sees the snapshot of the statement that calls it.
create function feed_page(after bigint, most integer) returns setof changes language plpgsql stable rows 1 set enable_seqscan = off as $$
begin
  return query select * from changes c where c.seq > after order by c.seq limit most;
end
$$;

create function feed_newest() returns bigint language plpgsql stable set enable_seqscan = off as $$
begin
  return max(seq) from changes;
end
$$;

create or replace function feed_position() returns bigint language sql stable as $$
  select greatest(feed_newest(), (select pruned_through from feed_state))
$$;
