-- Roles and policies are loaded whole, tenant by tenant, by every server that a tenant's requests reach, so what one tenant writes takes
-- memory from all. Bounded here, so that no way of writing them is left out. Two who write at once may pass it by what one of them writes.
create function rules_size(owner text) returns bigint language sql stable as $$
  select coalesce((select sum(octet_length(actions::text) + octet_length(resources::text) + octet_length(conditions::text))
      from policies where coalesce(tenant_id, '') = coalesce(owner, '')), 0)
    + coalesce((select sum(octet_length(permissions::text) + octet_length(resource_constraints::text)) from roles where tenant_id = owner), 0)
$$;

create function refuse_large_rules() returns trigger language plpgsql as $$
begin
  if rules_size(new.tenant_id) > 4 * 1024 * 1024 then
    raise check_violation using message = 'the roles and policies of a tenant take more than 4 MiB', constraint = 'rules_size';
  end if;
  return null;
end
$$;
create trigger policies_size after insert or update of actions, resources, conditions on policies
  for each row execute function refuse_large_rules();
create trigger roles_size after insert or update of permissions, resource_constraints on roles
  for each row execute function refuse_large_rules();
