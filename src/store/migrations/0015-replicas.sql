-- The processes that decide or authenticate from a cache, and how far each has applied the change feed. Each process writes its own row.
create table replicas (
  id text primary key,
  -- The server that the process belongs to: one supervisor, or one process alone.
  server text not null,
  -- The last sequence number of the change feed that the process has applied.
  applied bigint not null,
  -- Until then the process may decide by what it has cached without hearing of a change.
  trusted_until timestamptz not null
);
