-- Metadata of users and tenants, the last login and the lock of users, the filters for users that need care, the filters of tenants, and the
-- totals of the audit chain.

-- A constant default rewrites no row.
alter table users add column metadata jsonb not null default '{}';
alter table tenants add column metadata jsonb not null default '{}';

-- The last login of each user, in a table of its own: a login holds the user's row shared, so two logins of a user at once could not write it.
create table user_logins (
  user_id text primary key references users (id) on delete cascade,
  last_login_at timestamptz not null,
  -- For users of a directory: the SHA-256 that failed logins under the username of this login are counted by.
  account bytea
)
with (fillfactor = 80);
create index user_logins_by_account on user_logins (account) where account is not null;
insert into user_logins (user_id, last_login_at) select user_id, max(created_at) from sessions group by user_id;

-- Set while the failures of the window are as many as the limit of the attempt that was counted last: the time at which the window ends.
alter table login_failures add column locked_until timestamptz;
create index login_failures_locked on login_failures (locked_until) where scope = 'account' and locked_until is not null;

-- What failed logins of a local user are counted by.
create function user_account(id text, email text) returns bytea
  -- The cost makes the planner look locked accounts up in the index, instead of computing the digests of all users.
  language plpgsql immutable parallel safe cost 10000 as $$
begin
  return sha256(convert_to(coalesce('email:' || email, 'user:' || id), 'UTF8'));
end
$$;
create index users_by_account on users (user_account(id, email)) where source = 'local';

-- In the order of lists. Users of directories only.
create index users_by_directory_status on users ((coalesce(directory_suspension, 'active')), id) where source = 'ldap';
create index users_by_tenant_directory_status on users (tenant_id, (coalesce(directory_suspension, 'active')), id) where source = 'ldap';
create index users_in_email_conflict on users (id) where email_conflict is not null;

-- Lists of tenants, by status and by text. The index of text has the lexemes that users are found by, without their marks.
create index tenants_by_status on tenants (status, (id collate "C")) where deleted_at is null;
create index tenants_by_lexeme on tenants using gin (user_lexemes('', '', '{}', lower(id || E'\n' || name)))
  with (fastupdate = off) where deleted_at is null;

-- How many seals there are and how many rows they name, so that nothing has to count them. No proof: `postern verify-audit` counts itself.
create table audit_totals (
  only_row boolean primary key default true check (only_row),
  sealed_rows bigint not null,
  seals bigint not null
);
create function audit_totals_add() returns trigger language plpgsql as $$
begin
  update audit_totals t set sealed_rows = t.sealed_rows + a.sealed_rows, seals = t.seals + a.seals
    from (select coalesce(sum(cardinality(row_ids)), 0) as sealed_rows, count(*) as seals from added) a where a.seals > 0;
  return null;
end
$$;
create function audit_totals_subtract() returns trigger language plpgsql as $$
begin
  update audit_totals t set sealed_rows = t.sealed_rows - g.sealed_rows, seals = t.seals - g.seals
    from (select coalesce(sum(cardinality(row_ids)), 0) as sealed_rows, count(*) as seals from gone) g where g.seals > 0;
  return null;
end
$$;
-- These hold inserts back until the totals are counted.
create trigger audit_totals_added after insert on audit_seals referencing new table as added
  for each statement execute function audit_totals_add();
create trigger audit_totals_gone after delete on audit_seals referencing old table as gone
  for each statement execute function audit_totals_subtract();
insert into audit_totals (sealed_rows, seals) select coalesce(sum(cardinality(row_ids)), 0), count(*) from audit_seals;
