-- Pages of the audit log are bounded in bytes, so a row tells what its before and after take as text. Rows from before have none: theirs
-- is counted when they are read.
alter table audit_log add column octets integer;

-- An owner has so many active keys. Those of a tenant itself are counted apart from its users'.
create index api_keys_of_tenant_itself on api_keys (tenant_id, expiry_month, revoked) include (expires_at) where user_id is null;

-- A session can be refreshed so many times: each use keeps a row, by which a stolen refresh token is known.
alter table sessions add column refreshes integer not null default 0;

-- A user has so many active sessions: the login beyond ends the one that was not used for longest.
create index sessions_not_ended_by_user on sessions (user_id) where ended_at is null;
