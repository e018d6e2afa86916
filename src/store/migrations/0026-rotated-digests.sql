-- Digests of secrets that rotations replaced, so that an explanation can tell an old secret from an unknown one. A row proves nothing: no
-- decision reads this table. Rows are removed 30 days after their secret stopped, and a key has at most 100.
create table rotated_key_digests (
  digest bytea primary key,
  -- No foreign key: a row may outlive its key by some days.
  key_id text not null,
  -- When the secret stopped: the end of its grace, or the next rotation if that came first.
  stopped_at timestamptz not null
);
create index rotated_key_digests_by_key on rotated_key_digests (key_id, stopped_at);
create index rotated_key_digests_by_time on rotated_key_digests (stopped_at);

insert into rotated_key_digests (digest, key_id, stopped_at)
select previous_digest, id, previous_until from api_keys
where previous_digest is not null and previous_until > now() - interval '30 days';

-- Since when a user is deactivated: null for active users, and for users that were deactivated before this migration.
alter table users add column deactivated_at timestamptz;

create function note_deactivation() returns trigger language plpgsql as $$
begin
  new.deactivated_at := case when new.status = 'deactivated' then clock_timestamp() end;
  return new;
end
$$;
create trigger users_deactivation before update on users
  for each row when (old.status is distinct from new.status) execute function note_deactivation();
create trigger users_deactivation_new before insert on users
  for each row when (new.status = 'deactivated') execute function note_deactivation();
