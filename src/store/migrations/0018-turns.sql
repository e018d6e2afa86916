-- A change reads what its caller may do inside its own transaction, and holds it until the commit: each part by name, shared with the other
-- changes of the same caller. Whoever changes a part holds its name alone. Row locks would not do by themselves: a row that does not
-- exist yet (a new policy) has none, and PostgreSQL lets those that share a row go ahead of one that waits to change it, so a caller that
-- writes without a pause could keep its key from being revoked. These locks are granted in the order in which they are requested.
-- Two names with one hash only wait for each other.
create function hold_turn(name text, alone boolean) returns void language plpgsql as $$
begin
  if alone then
    perform pg_advisory_xact_lock(726543484, hashtext(name));
  else
    perform pg_advisory_xact_lock_shared(726543484, hashtext(name));
  end if;
end
$$;

-- Roles and policies are held by owner: a tenant, or empty for the global policies. Every transaction that writes one holds the owner
-- alone, whether or not it did so before.
create function rules_hold_owner() returns trigger language plpgsql as $$
begin
  perform hold_turn(coalesce(new.tenant_id, old.tenant_id, ''), true);
  return coalesce(new, old);
end
$$;
create trigger roles_hold_owner before insert or update or delete on roles for each row execute function rules_hold_owner();
create trigger policies_hold_owner before insert or update or delete on policies for each row execute function rules_hold_owner();

-- A policy that is not found goes in this transaction, and its own trigger holds the owner.
create function policy_roles_hold_owner() returns trigger language plpgsql as $$
begin
  perform hold_turn(coalesce(p.tenant_id, ''), true) from policies p where p.id = coalesce(new.policy_id, old.policy_id);
  return coalesce(new, old);
end
$$;
create trigger policy_roles_hold_owner before insert or update or delete on policy_roles
  for each row execute function policy_roles_hold_owner();
