-- Usage as it is read, and as platforms tell of it that meter themselves.
--
-- Locks: usage_events comes before all that booking takes.

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
