-- The audit log as evidence: committed rows are sealed in batches, each seal holding the one before it, under a key that is not in the
-- database. And the indexes that each filter of the log needs, newest first.

-- Rows that no seal names yet. Written in the transaction of the row itself, so a row that commits late is found however late it is;
-- a row that came another way is never sealed, and is found too.
create table audit_unsealed (
  id bigint primary key
)
-- A queue: as many rows go as come, so it is swept often.
with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 10000);
insert into audit_unsealed select id from audit_log;

create table audit_seals (
  -- 1, 2, 3 and so on: the chain has no gaps.
  seq bigint primary key,
  kind text not null check (kind in ('rows', 'removal')),
  sealed_at timestamptz not null,
  -- The rows that it names, ascending, and 32 bytes for each: the SHA-256 of the row's canonical text, zeros for a row that was gone.
  row_ids bigint[] not null default '{}',
  row_digests bytea not null default '',
  -- A removal: all seals up to this one are gone with their rows, because they were older than audit.retention; what its hash was, and
  -- how many rows have gone so from the first removal on.
  removed_through bigint,
  removed_hash bytea,
  removed_rows bigint,
  -- Of the seal before it; 32 zeros in the first.
  previous_hash bytea not null,
  -- HMAC-SHA-256 over all of the above.
  hash bytea not null,
  check (case kind
    when 'rows' then num_nulls(removed_through, removed_hash, removed_rows) = 3
    else num_nulls(removed_through, removed_hash, removed_rows) = 0 and cardinality(row_ids) = 0 and row_digests = ''
  end)
);
-- Digests do not get shorter by compressing.
alter table audit_seals alter column row_digests set storage external;
create index audit_removals on audit_seals (seq) where kind = 'removal';

-- The newest seal, signed once more: so that cutting seals off the end of the chain shows.
create table audit_chain (
  only_row boolean primary key default true check (only_row),
  seq bigint not null,
  hash bytea not null,
  mac bytea not null
);

drop index audit_by_tenant;
create index audit_by_time on audit_log (time, id);
create index audit_by_tenant on audit_log (tenant_id, time, id);
-- The tenant comes second: with it the rows come out in order, without it (every tenant) the few rows of a rare value are sorted, and a
-- frequent value is soon met in the order of time.
create index audit_by_actor on audit_log (coalesce(actor_id, actor_type), tenant_id, time, id);
create index audit_by_action on audit_log (action, tenant_id, time, id);
create index audit_by_target on audit_log (target_id, tenant_id, time, id);
create index audit_by_result on audit_log (result, tenant_id, time, id);
create index audit_by_request on audit_log (request_id, time, id) where request_id is not null;
