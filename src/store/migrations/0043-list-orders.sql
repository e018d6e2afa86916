-- Additive: older servers neither sort lists nor read `disabled_at`. A gate of an older version accepts a disabled key, so disable keys
-- after the last server is upgraded. Older servers list keys by their month of expiry without an index.

-- A disabled key works again when it is enabled. The change reaches every replica as a revocation does.
alter table api_keys add column disabled_at timestamptz;
create constraint trigger api_keys_feed_disabled after update on api_keys deferrable initially deferred for each row
  when (old.disabled_at is distinct from new.disabled_at) execute function feed_key();

-- The orders of lists of keys. No index has the last use: an update of an indexed column writes to every index of the table, and keys are used
-- all the time.
create index api_keys_in_order on api_keys (created_at, id);
create index api_keys_by_tenant_order on api_keys (tenant_id, created_at, id);
drop index if exists api_keys_by_expiry, api_keys_by_tenant_expiry, api_keys_by_creator;
create index api_keys_by_expiry on api_keys (expires_at, id);
create index api_keys_by_tenant_expiry on api_keys (tenant_id, expires_at, id);
create index api_keys_by_creator on api_keys (created_by);

-- The orders of lists of users.
create index users_in_order on users (created_at, id);
create index users_by_tenant_order on users (tenant_id, created_at, id);
create index users_by_name on users ((lower(name) collate "C"), id);
create index users_by_tenant_name on users (tenant_id, (lower(name) collate "C"), id);

-- A login holds the row of its user shared, so the time is not in that row. The tenant is repeated here, for an index of each tenant's logins.
alter table user_logins add column tenant_id text;
update user_logins l set tenant_id = u.tenant_id from users u where u.id = l.user_id;
create index user_logins_in_order on user_logins (last_login_at, user_id);
create index user_logins_by_tenant_order on user_logins (tenant_id, last_login_at, user_id);
create function user_logins_fill() returns trigger language plpgsql as $$
begin
  select u.tenant_id into new.tenant_id from users u where u.id = new.user_id;
  return new;
end
$$;
create trigger user_logins_fill before insert on user_logins for each row when (new.tenant_id is null) execute function user_logins_fill();
create or replace function users_spread() returns trigger language plpgsql as $$
begin
  update user_roles set tenant_id = new.tenant_id, status = new.status where user_id = new.id;
  if old.tenant_id <> new.tenant_id then
    update user_logins set tenant_id = new.tenant_id where user_id = new.id;
  end if;
  return null;
end
$$;
