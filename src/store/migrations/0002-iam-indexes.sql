-- Lists and filters at the size of a large platform: each filter alone, and any of them together, finds a page without reading what it
-- does not show. Nothing here needs an extension. docs/decisions/0010-lists.md says why it is built so.

-- Users by role ------------------------------------------------------------------------------------------------------------------

-- A role's holders in the order of their ids, of one tenant or of all, of either status: what a user's row says is repeated here, so that
-- one index can hold it together.
alter table user_roles add column tenant_id text, add column status text;
alter table user_roles disable trigger user;
update user_roles r set tenant_id = u.tenant_id, status = u.status from users u where u.id = r.user_id;
alter table user_roles enable trigger user;
alter table user_roles alter column tenant_id set not null, alter column status set not null;

drop index user_roles_by_role;
create index user_roles_by_role on user_roles (role_name, status, user_id);
create index user_roles_by_tenant_role on user_roles (tenant_id, role_name, status, user_id);

-- Who gives a role and holds the user's row already may say both; for everybody else they are looked up, and the row is held, so that its
-- status does not change unseen between here and the end of the transaction.
create function user_roles_fill() returns trigger language plpgsql as $$
begin
  select u.tenant_id, u.status into new.tenant_id, new.status from users u where u.id = new.user_id for share;
  if not found then
    raise foreign_key_violation using message = 'no such user', constraint = 'user_roles_user_id_fkey', table = 'user_roles';
  end if;
  return new;
end
$$;
create trigger user_roles_fill before insert on user_roles
  for each row when (new.tenant_id is null or new.status is null) execute function user_roles_fill();
create trigger user_roles_refill before update of user_id on user_roles
  for each row execute function user_roles_fill();

create function users_spread() returns trigger language plpgsql as $$
begin
  update user_roles set tenant_id = new.tenant_id, status = new.status where user_id = new.id;
  return null;
end
$$;
create trigger users_spread after update of tenant_id, status on users
  for each row when (row(old.tenant_id, old.status) is distinct from row(new.tenant_id, new.status))
  execute function users_spread();

-- The repeated columns are no news to a replica.
drop trigger user_roles_feed on user_roles;
create constraint trigger user_roles_feed_new after insert or delete on user_roles
  deferrable initially deferred for each row execute function feed_user_role();
create constraint trigger user_roles_feed after update on user_roles
  deferrable initially deferred for each row
  when (row(old.user_id, old.role_name, old.source) is distinct from row(new.user_id, new.role_name, new.source))
  execute function feed_user_role();

-- Users by status and by text ----------------------------------------------------------------------------------------------------

create index users_by_status on users (status, id);
create index users_by_tenant_status on users (tenant_id, status, id);

-- What a search looks in. A line break parts the fields, so that nothing is found across two of them.
alter table users
  add column search_text text not null
    generated always as (lower(name || E'\n' || coalesce(email, '') || E'\n' || coalesce(department, ''))) stored,
  -- The names of all roles held, by whatever source.
  add column role_names text[] not null default '{}';

alter table users disable trigger user;
update users u set role_names = r.names
  from (select user_id, array_agg(distinct role_name order by role_name) as names from user_roles group by user_id) r
  where r.user_id = u.id;
alter table users enable trigger user;

create function user_roles_collect() returns trigger language plpgsql as $$
declare
  touched text[];
begin
  if tg_op = 'INSERT' then
    touched := array(select distinct user_id from new_rows);
  elsif tg_op = 'DELETE' then
    touched := array(select distinct user_id from old_rows);
  else
    touched := array(
      select n.user_id from new_rows n where not exists (select from old_rows o where o.user_id = n.user_id and o.role_name = n.role_name)
      union
      select o.user_id from old_rows o where not exists (select from new_rows n where n.user_id = o.user_id and n.role_name = o.role_name));
  end if;
  if touched <> '{}' then
    -- What another transaction takes away is waited for, and counted by the next statement. Who adds a role holds the row already.
    if tg_op <> 'INSERT' then
      perform from users u where u.id = any(touched) order by u.id for no key update;
    end if;
    update users u set role_names = held.names
    from (
      select one.id, array(select distinct r.role_name from user_roles r where r.user_id = one.id order by 1) as names
      from unnest(touched) one (id)
    ) held
    where u.id = held.id and u.role_names <> held.names;
  end if;
  return null;
end
$$;
create trigger user_roles_collect_new after insert on user_roles referencing new table as new_rows
  for each statement execute function user_roles_collect();
create trigger user_roles_collect_changed after update on user_roles referencing old table as old_rows new table as new_rows
  for each statement execute function user_roles_collect();
create trigger user_roles_collect_gone after delete on user_roles referencing old table as old_rows
  for each statement execute function user_roles_collect();

-- The lexemes that a user is found by: every three characters in a row (fewer at the very end, so that each one or two characters in the
-- text begin some lexeme), and tenant, status and roles behind a character that marks them.
create function user_lexemes(tenant_id text, status text, role_names text[], search_text text) returns tsvector
  -- Dear enough that it is never worked out row by row where the index has it.
  language plpgsql immutable strict parallel safe cost 10000 as $$
declare
  lexemes text[] := array(select E'\x01r' || name from unnest(role_names) name) || (E'\x01t' || tenant_id) || (E'\x01s' || status);
  marked integer := cardinality(lexemes);
begin
  for i in 1..length(search_text) loop
    lexemes[marked + i] := substr(search_text, i, 3);
  end loop;
  return array_to_tsvector(lexemes);
end
$$;
-- Every null is a filter that is not there. What it finds holds everything that it should and maybe more: three characters may all be in a
-- text without standing together.
create function user_query(tenant_id text, status text, role_name text, needle text) returns tsquery
  -- A page is small: more processes would cost more than they find.
  language sql immutable parallel unsafe as $$
  select string_agg('''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || case when length(lexeme) < 3 then ''':*' else '''' end, ' & ')::tsquery
  from (
    -- Side by side, and the last: what lies across two of them is left to the comparison of texts.
    select substr(needle, i, 3) from generate_series(1, greatest(length(needle) - 2, 1), 3) i
    union
    select substr(needle, greatest(length(needle) - 2, 1), 3)
    union
    select marked from unnest(array[E'\x01t' || tenant_id, E'\x01s' || status, E'\x01r' || role_name]) marked where marked is not null
  ) wanted (lexeme)
$$;
-- Written through at once: a list of what waits to be written would have to be read by every search.
create index users_by_lexeme on users using gin (user_lexemes(tenant_id, status, role_names, search_text)) with (fastupdate = off);

-- Keys by expiry -----------------------------------------------------------------------------------------------------------------

-- The status of a key depends on the time, so no index can hold it; the month in which it expires does not. Every filter on status and
-- expiry is some whole months, each in the order of ids, and one or two in part.
create function expiry_month_of(at timestamptz) returns integer language sql immutable parallel safe as $$
  select coalesce((extract(year from at at time zone 'UTC') * 12 + extract(month from at at time zone 'UTC'))::integer, 2147483647)
$$;
alter table api_keys
  add column expiry_month integer not null generated always as (expiry_month_of(expires_at)) stored,
  add column revoked boolean not null generated always as (revoked_at is not null) stored;
create index api_keys_by_expiry on api_keys (expiry_month, revoked, id);
create index api_keys_by_tenant_expiry on api_keys (tenant_id, expiry_month, revoked, id);
create index api_keys_by_user_expiry on api_keys (user_id, expiry_month, revoked, id) where user_id is not null;

-- Roles, policies and tenants by name --------------------------------------------------------------------------------------------

-- In the order of bytes, whatever the database's own: the order of the lists, and of the program.
create index roles_by_tenant_name on roles (tenant_id, (name collate "C"));
create index roles_in_order on roles ((name collate "C"), (tenant_id collate "C"));
create index policies_by_owner_name on policies (coalesce(tenant_id, ''), (name collate "C"));
create index policies_in_order on policies ((name collate "C"), (coalesce(tenant_id, '') collate "C"));
create index tenants_in_order on tenants ((id collate "C")) where deleted_at is null;
