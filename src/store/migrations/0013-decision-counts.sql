-- What the gate decided, counted by the minute: for whoever wants to see what happens now and happened lately. All servers add to the same
-- rows; upkeep takes away what is older than the platform looks back.
create table decision_counts (
  -- Of whom a request was decided for; empty where nobody was known.
  tenant_id text not null collate "C",
  minute timestamptz not null,
  code text not null collate "C",
  -- A line of the route table, or empty.
  route text not null collate "C",
  decisions bigint not null,
  primary key (tenant_id, minute, code, route)
);
create index decision_counts_by_minute on decision_counts (minute);
