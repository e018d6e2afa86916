-- Additive: an older server removes a role from its holders when it deletes it, and answers a reserved name with an error.

-- A deleted role gives nothing from the commit on, because its name is unknown. The rows of its holders go afterwards in small batches, as a
-- statement over all of them would hold locks for minutes. Until they are gone, no role gets the name: the former holders would have it.
create table deleted_roles (
  tenant_id text not null,
  name text not null,
  primary key (tenant_id, name)
);

-- A transaction that deletes or inserts a role holds an exclusive lock on the tenant's rules, so an insert sees every deletion before it.
create function roles_refuse_deleted_name() returns trigger language plpgsql as $$
begin
  if exists (select from deleted_roles d where d.tenant_id = new.tenant_id and d.name = new.name) then
    raise unique_violation using message = 'users still have rows of a deleted role of this name', constraint = 'roles_deleted_name',
      table = 'roles';
  end if;
  return null;
end
$$;
create trigger roles_deleted_name after insert or update of tenant_id, name on roles
  for each row execute function roles_refuse_deleted_name();
