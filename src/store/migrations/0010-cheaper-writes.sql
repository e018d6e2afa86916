-- What a write costs at the size of a large platform: less work for the same promises.

-- The size of a tenant's roles and policies ----------------------------------------------------------------------------------------

-- Counted once, when a row is written, and added up when another is: to write all of them out each time took longer than the write.
alter table policies disable trigger user;
alter table policies add column octets integer not null default 0;
update policies set octets = octet_length(actions::text) + octet_length(resources::text) + octet_length(conditions::text);
alter table policies enable trigger user;
alter table roles disable trigger user;
alter table roles add column octets integer not null default 0;
update roles set octets = octet_length(permissions::text) + octet_length(resource_constraints::text);
alter table roles enable trigger user;

create function policies_count_octets() returns trigger language plpgsql as $$
begin
  new.octets := octet_length(new.actions::text) + octet_length(new.resources::text) + octet_length(new.conditions::text);
  return new;
end
$$;
create trigger policies_octets before insert or update on policies for each row execute function policies_count_octets();
create function roles_count_octets() returns trigger language plpgsql as $$
begin
  new.octets := octet_length(new.permissions::text) + octet_length(new.resource_constraints::text);
  return new;
end
$$;
create trigger roles_octets before insert or update on roles for each row execute function roles_count_octets();

create or replace function refuse_large_rules() returns trigger language plpgsql as $$
begin
  if coalesce((select sum(octets) from policies where coalesce(tenant_id, '') = coalesce(new.tenant_id, '')), 0)
    + coalesce((select sum(octets) from roles where tenant_id = new.tenant_id), 0) > 4 * 1024 * 1024 then
    raise check_violation using message = 'the roles and policies of a tenant take more than 4 MiB', constraint = 'rules_size';
  end if;
  return null;
end
$$;
drop function rules_size(text);

-- The feed -------------------------------------------------------------------------------------------------------------------------

-- A notification says which change it is about: who has read on past it meanwhile need not look again. And rows of one user or tenant
-- change together often: one line in a row tells of them all, since all become visible with it.
create or replace function feed_append(change_kind text, change_key text) returns void language plpgsql as $$
declare
  told text := change_kind || ' ' || change_key;
  number bigint;
begin
  if current_setting('postern.told', true) is not distinct from told then
    return;
  end if;
  -- Until the end of the transaction, or of the savepoint that is rolled back.
  perform set_config('postern.told', told, true);
  perform pg_advisory_xact_lock(726543480);
  number := nextval('change_seq');
  insert into changes (seq, kind, key) values (number, change_kind, change_key);
  perform pg_notify('postern_changes', number::text);
end
$$;

-- The names of a user's roles ------------------------------------------------------------------------------------------------------

-- Who makes a user with roles writes the names along with the user, so mostly there is nothing to do: that is asked first. Who adds a
-- role holds the user's row already.
create function user_roles_collect_new() returns trigger language plpgsql as $$
begin
  if exists (select from new_rows n join users u on u.id = n.user_id where n.role_name <> all(u.role_names)) then
    update users u set role_names = array(select distinct r.role_name from user_roles r where r.user_id = u.id order by 1)
    where u.id in (select n.user_id from new_rows n join users v on v.id = n.user_id where n.role_name <> all(v.role_names));
  end if;
  return null;
end
$$;
drop trigger user_roles_collect_new on user_roles;
create trigger user_roles_collect_new after insert on user_roles referencing new table as new_rows
  for each statement execute function user_roles_collect_new();

-- The index of text ----------------------------------------------------------------------------------------------------------------

-- Entries of some hundred users wait in a list, which searches read as well, and are then sorted into the index together: half the work
-- of doing so for each user alone. The list is kept so short that reading it costs a search next to nothing.
alter index users_by_lexeme set (fastupdate = on, gin_pending_list_limit = 256);
