-- The foundation: tenants, people, roles, policies, keys, sessions, the audit log, and the change feed that keeps every replica's cache true.

create table meta (
  name text primary key,
  value text not null
);

-- The change feed ---------------------------------------------------------------------------------------------------------------

create table feed_state (
  only_row boolean primary key default true check (only_row),
  -- A new epoch tells every replica to flush: the feed before it says nothing about the rows after it.
  epoch uuid not null default gen_random_uuid(),
  -- Changes up to this number are gone; who read less has missed some and flushes.
  pruned_through bigint not null default 0
);
insert into feed_state default values;

create sequence change_seq;

create table changes (
  seq bigint primary key,
  kind text not null check (kind in ('key', 'user', 'session', 'tenant', 'global', 'signing_keys')),
  key text not null,
  at timestamptz not null default clock_timestamp()
);

-- The feed's position as the calling statement's snapshot sees it. A row read in the same statement is at least this fresh.
create function feed_position() returns bigint language sql stable as $$
  select greatest((select max(seq) from changes), (select pruned_through from feed_state))
$$;

-- Called by deferred triggers alone, at the end of the transaction: the lock makes number order equal commit order, and taking it
-- last means that it never waits for a row lock while held. It is let go only after the commit is visible to all.
create function feed_append(change_kind text, change_key text) returns void language plpgsql as $$
begin
  perform pg_advisory_xact_lock(726543480);
  insert into changes (seq, kind, key) values (nextval('change_seq'), change_kind, change_key);
  perform pg_notify('postern_changes', '');
end
$$;

-- Tenants -----------------------------------------------------------------------------------------------------------------------

create table tenants (
  id text primary key,
  name text not null,
  status text not null default 'active' check (status in ('active', 'suspended')),
  settings jsonb not null default '{}',
  quotas jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- Ids are never used again, so a deleted tenant keeps its row.
  deleted_at timestamptz
);

-- Users -------------------------------------------------------------------------------------------------------------------------

create table users (
  id text primary key,
  tenant_id text not null references tenants (id),
  email text unique check (email = lower(email)),
  name text not null,
  department text,
  status text not null default 'active' check (status in ('active', 'deactivated')),
  source text not null default 'local' check (source in ('local', 'ldap')),
  password_hash text,
  password_changed_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index users_by_tenant on users (tenant_id, id);

create table user_roles (
  user_id text not null references users (id) on delete cascade,
  role_name text not null,
  source text not null default 'manual' check (source in ('manual', 'directory')),
  primary key (user_id, role_name, source)
);
create index user_roles_by_role on user_roles (role_name, user_id);

-- Roles and policies ------------------------------------------------------------------------------------------------------------

create table roles (
  tenant_id text not null references tenants (id),
  name text not null,
  description text not null default '',
  permissions text[] not null,
  resource_constraints jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (tenant_id, name)
);

create table policies (
  id bigint generated always as identity primary key,
  -- null = global: in force in every tenant
  tenant_id text references tenants (id),
  name text not null,
  description text not null default '',
  effect text not null check (effect in ('allow', 'deny')),
  actions text[] not null,
  resources text[] not null,
  conditions jsonb not null default '{}',
  applies_to text not null check (applies_to in ('everyone', 'roles')),
  enabled boolean not null default true,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create unique index policies_by_name on policies (coalesce(tenant_id, ''), name);

create index policies_by_bare_name on policies (name);

-- A name is unique across a tenant's policies and the global ones together, which no index can say. One lock for all names, because
-- a lock for each would fill the server's lock table when many are written at once.
create function policies_check_name() returns trigger language plpgsql as $$
begin
  perform pg_advisory_xact_lock(726543482);
  if exists (
    select from policies p
    where p.name = new.name and p.id <> new.id and (p.tenant_id is null or new.tenant_id is null or p.tenant_id = new.tenant_id)
  ) then
    raise unique_violation using message = 'a policy of this name exists', constraint = 'policies_by_name', table = 'policies';
  end if;
  return null;
end
$$;
create trigger policies_name after insert or update of name, tenant_id on policies
  for each row execute function policies_check_name();

create table policy_roles (
  policy_id bigint not null references policies (id) on delete cascade,
  role_name text not null,
  primary key (policy_id, role_name)
);
create index policy_roles_by_role on policy_roles (role_name);

-- API keys ----------------------------------------------------------------------------------------------------------------------

create table api_keys (
  id text primary key,
  tenant_id text not null references tenants (id),
  -- null = the tenant's own. No foreign key: a revoked key outlives its owner's row.
  user_id text,
  description text not null,
  digest bytea not null unique,
  prefix text not null,
  last_four text not null,
  scopes text[] not null,
  resource_constraints jsonb not null default '{}',
  rate_limit_rpm integer,
  expires_at timestamptz,
  revoked_at timestamptz,
  -- While a rotation's grace lasts, the digest before it works too.
  previous_digest bytea,
  previous_until timestamptz,
  last_used_at timestamptz,
  created_by text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
)
-- Room on each page, so that noting the last use touches no index.
with (fillfactor = 90);
create unique index api_keys_by_previous_digest on api_keys (previous_digest) where previous_digest is not null;
create index api_keys_by_tenant on api_keys (tenant_id, id);
create index api_keys_by_user on api_keys (user_id, id) where user_id is not null;

-- Sessions, refresh tokens, signing keys ----------------------------------------------------------------------------------------

create table sessions (
  id text primary key,
  user_id text not null references users (id) on delete cascade,
  created_at timestamptz not null default now(),
  last_used_at timestamptz not null default now(),
  expires_at timestamptz not null,
  ended_at timestamptz,
  cookie boolean not null default false,
  address text,
  user_agent text
);
create index sessions_by_user on sessions (user_id, id);

create table refresh_tokens (
  digest bytea primary key,
  session_id text not null references sessions (id) on delete cascade,
  -- The successor is derived under secret-key from the token and this, so nothing plain is stored.
  nonce bytea not null,
  issued_at timestamptz not null default now(),
  used_at timestamptz,
  successor_digest bytea
);
create index refresh_tokens_by_session on refresh_tokens (session_id);

create table signing_keys (
  kid text primary key,
  public_jwk jsonb not null,
  -- PKCS#8, sealed under secret-key (AES-256-GCM)
  private_sealed bytea not null,
  created_at timestamptz not null default now(),
  -- A key is published before it signs and after it has stopped: next -> current -> retired -> gone.
  signs_from timestamptz not null,
  retired_at timestamptz
);

create table one_time_tokens (
  digest bytea primary key,
  user_id text not null references users (id) on delete cascade,
  purpose text not null check (purpose in ('password_setup')),
  expires_at timestamptz not null,
  used_at timestamptz
);
create index one_time_tokens_by_user on one_time_tokens (user_id);

create table login_failures (
  -- 'account' or 'address', and the SHA-256 of which
  scope text not null check (scope in ('account', 'address')),
  subject bytea not null,
  window_start timestamptz not null,
  failures integer not null,
  primary key (scope, subject)
);
create index login_failures_by_window on login_failures (window_start);

-- Audit -------------------------------------------------------------------------------------------------------------------------

create table audit_log (
  id bigint generated always as identity primary key,
  time timestamptz not null default clock_timestamp(),
  actor_type text not null check (actor_type in ('user', 'api_key', 'system', 'anonymous')),
  actor_id text,
  tenant_id text,
  address text,
  action text not null,
  target_type text,
  target_id text,
  result text not null check (result in ('success', 'failure', 'refused')),
  before jsonb,
  after jsonb,
  request_id text
);
create index audit_by_tenant on audit_log (tenant_id, id);

-- Triggers: every row that a replica caches tells the feed ------------------------------------------------------------------------

create function feed_key() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    perform feed_append('key', encode(old.digest, 'hex'));
    if old.previous_digest is not null then
      perform feed_append('key', encode(old.previous_digest, 'hex'));
    end if;
  end if;
  if tg_op <> 'DELETE' then
    perform feed_append('key', encode(new.digest, 'hex'));
    if new.previous_digest is not null then
      perform feed_append('key', encode(new.previous_digest, 'hex'));
    end if;
  end if;
  return null;
end
$$;
create constraint trigger api_keys_feed_new after insert or delete on api_keys
  deferrable initially deferred for each row execute function feed_key();
-- The last use is no change of what the key may do.
create constraint trigger api_keys_feed after update on api_keys
  deferrable initially deferred for each row
  when (row(old.tenant_id, old.user_id, old.digest, old.scopes, old.resource_constraints, old.rate_limit_rpm, old.expires_at, old.revoked_at, old.previous_digest, old.previous_until)
    is distinct from row(new.tenant_id, new.user_id, new.digest, new.scopes, new.resource_constraints, new.rate_limit_rpm, new.expires_at, new.revoked_at, new.previous_digest, new.previous_until))
  execute function feed_key();

create function feed_user() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' and old.id <> new.id then
    perform feed_append('user', old.id);
  end if;
  perform feed_append('user', coalesce(new.id, old.id));
  return null;
end
$$;
create constraint trigger users_feed_new after insert or delete on users
  deferrable initially deferred for each row execute function feed_user();
create constraint trigger users_feed after update on users
  deferrable initially deferred for each row
  when (row(old.id, old.tenant_id, old.status) is distinct from row(new.id, new.tenant_id, new.status))
  execute function feed_user();

create function feed_user_role() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' and old.user_id <> new.user_id then
    perform feed_append('user', old.user_id);
  end if;
  perform feed_append('user', coalesce(new.user_id, old.user_id));
  return null;
end
$$;
create constraint trigger user_roles_feed after insert or update or delete on user_roles
  deferrable initially deferred for each row execute function feed_user_role();

-- A session's id is told to nobody before its row is committed, so no cache can know it as missing.
create function feed_session() returns trigger language plpgsql as $$
begin
  perform feed_append('session', old.id);
  return null;
end
$$;
create constraint trigger sessions_feed_gone after delete on sessions
  deferrable initially deferred for each row execute function feed_session();
create constraint trigger sessions_feed after update on sessions
  deferrable initially deferred for each row
  when (row(old.id, old.user_id, old.ended_at, old.expires_at) is distinct from row(new.id, new.user_id, new.ended_at, new.expires_at))
  execute function feed_session();

create function feed_tenant() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' and old.id <> new.id then
    perform feed_append('tenant', old.id);
  end if;
  perform feed_append('tenant', coalesce(new.id, old.id));
  return null;
end
$$;
create constraint trigger tenants_feed after insert or update or delete on tenants
  deferrable initially deferred for each row execute function feed_tenant();

create function feed_role() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' and old.tenant_id <> new.tenant_id then
    perform feed_append('tenant', old.tenant_id);
  end if;
  perform feed_append('tenant', coalesce(new.tenant_id, old.tenant_id));
  return null;
end
$$;
create constraint trigger roles_feed after insert or update or delete on roles
  deferrable initially deferred for each row execute function feed_role();

create function feed_of_policy(tenant text) returns void language plpgsql as $$
begin
  if tenant is null then
    perform feed_append('global', '');
  else
    perform feed_append('tenant', tenant);
  end if;
end
$$;
create function feed_policy() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    perform feed_of_policy(old.tenant_id);
  end if;
  if tg_op <> 'DELETE' and (tg_op = 'INSERT' or new.tenant_id is distinct from old.tenant_id) then
    perform feed_of_policy(new.tenant_id);
  end if;
  return null;
end
$$;
create constraint trigger policies_feed after insert or update or delete on policies
  deferrable initially deferred for each row execute function feed_policy();

-- A policy that is not found went in this transaction, and its own trigger tells.
create function feed_policy_role() returns trigger language plpgsql as $$
declare
  owner record;
begin
  for owner in
    select distinct tenant_id from policies
    where id = new.policy_id or id = old.policy_id
  loop
    perform feed_of_policy(owner.tenant_id);
  end loop;
  return null;
end
$$;
create constraint trigger policy_roles_feed after insert or update or delete on policy_roles
  deferrable initially deferred for each row execute function feed_policy_role();

create function feed_signing_key() returns trigger language plpgsql as $$
begin
  perform feed_append('signing_keys', '');
  return null;
end
$$;
create constraint trigger signing_keys_feed after insert or update or delete on signing_keys
  deferrable initially deferred for each row execute function feed_signing_key();

-- Emptying a table passes no row by the triggers above: then everything cached may be wrong.
create function feed_new_epoch() returns trigger language plpgsql as $$
begin
  update feed_state set epoch = gen_random_uuid();
  perform pg_notify('postern_changes', '');
  return null;
end
$$;
create trigger users_feed_emptied after truncate on users for each statement execute function feed_new_epoch();
create trigger user_roles_feed_emptied after truncate on user_roles for each statement execute function feed_new_epoch();
create trigger tenants_feed_emptied after truncate on tenants for each statement execute function feed_new_epoch();
create trigger roles_feed_emptied after truncate on roles for each statement execute function feed_new_epoch();
create trigger policies_feed_emptied after truncate on policies for each statement execute function feed_new_epoch();
create trigger policy_roles_feed_emptied after truncate on policy_roles for each statement execute function feed_new_epoch();
create trigger api_keys_feed_emptied after truncate on api_keys for each statement execute function feed_new_epoch();
create trigger sessions_feed_emptied after truncate on sessions for each statement execute function feed_new_epoch();
create trigger signing_keys_feed_emptied after truncate on signing_keys for each statement execute function feed_new_epoch();
