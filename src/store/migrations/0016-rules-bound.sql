-- The roles and policies of one tenant may take 1 MiB, and so may the global policies. Each server compiles them whole after every change,
-- so the bound counts all that a row costs there: its name, its lists and conditions as text, 128 bytes for the row itself, and 16 bytes
-- beside the name for each attached role. A tenant that has more from before keeps it; only a write that adds to it is refused.

create or replace function policies_count_octets() returns trigger language plpgsql as $$
begin
  new.octets := 128 + octet_length(new.name)
    + octet_length(new.actions::text) + octet_length(new.resources::text) + octet_length(new.conditions::text);
  return new;
end
$$;
create or replace function roles_count_octets() returns trigger language plpgsql as $$
begin
  new.octets := 128 + octet_length(new.name) + octet_length(new.permissions::text) + octet_length(new.resource_constraints::text);
  return new;
end
$$;

alter table policies disable trigger user;
update policies set octets = octets + 128 + octet_length(name);
alter table policies enable trigger user;
alter table roles disable trigger user;
update roles set octets = octets + 128 + octet_length(name);
alter table roles enable trigger user;

-- Empty is the owner of the global policies.
create function check_rules_size(owner text) returns void language plpgsql as $$
begin
  if coalesce((select sum(octets) from policies where coalesce(tenant_id, '') = owner), 0)
    + coalesce((select sum(octets) from roles where tenant_id = owner), 0)
    + coalesce((
        select sum(16 + octet_length(r.role_name)) from policies p join policy_roles r on r.policy_id = p.id
        where coalesce(p.tenant_id, '') = owner
      ), 0) > 1024 * 1024 then
    raise check_violation using message = 'the roles and policies of a tenant take more than 1 MiB', constraint = 'rules_size';
  end if;
end
$$;

create or replace function refuse_large_rules() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' or new.octets > old.octets then
    perform check_rules_size(coalesce(new.tenant_id, ''));
  end if;
  return null;
end
$$;

create function refuse_many_attached_roles() returns trigger language plpgsql as $$
begin
  perform check_rules_size(owner) from (
    select distinct coalesce(p.tenant_id, '') as owner from policies p where p.id in (select policy_id from new_rows)
  ) owners;
  return null;
end
$$;
create trigger policy_roles_size after insert on policy_roles referencing new table as new_rows
  for each statement execute function refuse_many_attached_roles();
