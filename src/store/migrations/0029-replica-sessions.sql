-- Additive: columns that older servers neither read nor write.
alter table replicas
  add column reported_at timestamptz,
  -- The PostgreSQL process that sends notifications to the replica. Null before the first one, and without notifications.
  add column session int;
