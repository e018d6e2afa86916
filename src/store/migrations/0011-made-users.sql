-- A user's id is told to nobody before its row is committed, so no cache can know it as missing: that a user was made, with the roles
-- given in the same transaction, is no news to a replica.

drop trigger users_feed_new on users;
create constraint trigger users_feed_gone after delete on users
  deferrable initially deferred for each row execute function feed_user();

create function users_made() returns trigger language plpgsql as $$
begin
  -- Until the end of the transaction, or of the savepoint that is rolled back.
  perform set_config('postern.made_user', new.id, true);
  return null;
end
$$;
create trigger users_made after insert on users for each row execute function users_made();

create or replace function feed_user_role() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    if current_setting('postern.made_user', true) is not distinct from new.user_id then
      return null;
    end if;
  elsif old.user_id is distinct from new.user_id then
    perform feed_append('user', old.user_id);
  end if;
  if tg_op <> 'DELETE' then
    perform feed_append('user', new.user_id);
  end if;
  return null;
end
$$;
