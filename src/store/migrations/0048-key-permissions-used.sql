-- Additive: the last day of each permission that an API key used. Older gates record no uses here, so a use during the rollout may be missing.

-- Gates write a row with the recorded allows of a key. Upkeep removes rows of more than 31 days ago, and those of removed keys. A key that is
-- removed while a gate writes leaves its rows to upkeep, so there is no foreign key: one removed key must not reject a gate's whole batch.
create table key_permissions_used (
  key_id text not null,
  -- The first permission of the route.
  permission text not null,
  -- In UTC.
  last_used_on date not null,
  primary key (key_id, permission)
);
create index key_permissions_used_by_day on key_permissions_used (last_used_on);

-- The first allows of the last 24 hours.
insert into key_permissions_used (key_id, permission, last_used_on)
select principal_id, permission, max(cast(time at time zone 'UTC' as date)) from recent_decisions
where outcome = 'allow' and principal_type = 'api_key' and principal_id is not null and permission is not null
group by principal_id, permission;
