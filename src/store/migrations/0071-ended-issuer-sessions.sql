-- Additive: an older server ends all sessions of an issuer row by row, as before. An older gate accepts a session after the first 1,000 until the
-- upkeep has ended its row.

-- An issuer may have more sessions than one transaction can end. The others are over from the commit on, because a row here names them. Their own
-- rows are ended afterwards in small batches, as the change feed cannot take them at once. Then the row here is removed.
create table ended_issuer_sessions (
  issuer_id text not null,
  which text not null check (which in ('all', 'users', 'logins')),
  -- The latest begin of a session that is over.
  begun_until timestamptz not null,
  primary key (issuer_id, which)
);
create index sessions_not_ended_by_issuer on sessions (issuer_id, created_at) where issuer_id is not null and ended_at is null;

-- The deletion of an issuer would write all of its sessions. They keep its id, which no other issuer gets.
alter table sessions drop constraint sessions_issuer_id_fkey;

alter table changes drop constraint changes_kind_check;
alter table changes add constraint changes_kind_check
  check (kind in ('key', 'user', 'session', 'tenant', 'global', 'signing_keys', 'issuer', 'link', 'prices', 'issuer_sessions'));

-- When a row is removed, the rows of its sessions have ended.
create function feed_ended_issuer_sessions() returns trigger language plpgsql as $$
begin
  perform feed_append('issuer_sessions', new.issuer_id);
  return null;
end
$$;
create constraint trigger ended_issuer_sessions_feed after insert or update on ended_issuer_sessions deferrable initially deferred
  for each row execute function feed_ended_issuer_sessions();
create trigger ended_issuer_sessions_feed_emptied after truncate on ended_issuer_sessions for each statement execute function feed_new_epoch();
