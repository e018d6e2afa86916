-- Additive: older servers create keys without adding them, so an owner may exceed its limits by the keys that they create during the rollout.

-- How many keys an owner has: no fewer than are active, and no fewer than were created within the period of the limit of new keys. Keys
-- that end are not subtracted. A server counts the keys of an owner only if these numbers reach a limit, so that creating a key costs the
-- same however many keys there are.
create table key_counts (
  -- A user or a tenant, whose ids differ.
  owner text primary key,
  -- Null = not counted yet.
  active integer,
  created integer
);
