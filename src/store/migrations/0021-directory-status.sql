-- What the directory said last of its users, and e-mail addresses that another user has.

-- Adding columns without a default, and with a constant one, rewrites no row.
alter table users
  -- Why the directory suspends the user: sessions have ended, keys are rejected. null = it does not.
  add column directory_suspension text
    check (directory_suspension in ('removed', 'disabled', 'expired', 'tenant_changed', 'several_names', 'several_ids')),
  add column directory_suspended_at timestamptz,
  -- When the directory last answered for the user: at a login, a refresh or a lookup. Users that exist already begin their day now.
  add column directory_checked_at timestamptz default now(),
  -- When a process last claimed the user's lookup: no other process claims it for a while, also if the first one crashed.
  add column directory_claimed_at timestamptz,
  -- The address that the directory shows and that another user has. The user has no address as long as this is set.
  add column email_conflict text check (email_conflict = lower(email_conflict)),
  add constraint users_suspension_of_directory check (directory_suspension is null or directory is not null),
  add constraint users_suspension_since check ((directory_suspension is null) = (directory_suspended_at is null)),
  add constraint users_conflict_without_email check (email_conflict is null or (email is null and directory is not null));

-- For the walk through the users of directories.
create index users_of_directories on users (id) where directory is not null;

-- A replica caches whether the user is suspended.
drop trigger users_feed on users;
create constraint trigger users_feed after update on users
  deferrable initially deferred for each row
  when (row(old.id, old.tenant_id, old.status, old.directory_suspension)
    is distinct from row(new.id, new.tenant_id, new.status, new.directory_suspension))
  execute function feed_user();

-- Gives a user an address, or its conflict when another user has the address, also if that one is written at the same moment.
create function give_directory_email(user_of_directory text, address text) returns void language plpgsql as $$
begin
  -- Asked first, so that two users who exchange addresses do not wait for each other.
  if not exists (select from users where email = address and id <> user_of_directory) then
    begin
      update users set email = address, email_conflict = null where id = user_of_directory;
      return;
    exception when unique_violation then
      -- The other user was committed after the question.
    end;
  end if;
  update users set email = null, email_conflict = address where id = user_of_directory;
end
$$;
