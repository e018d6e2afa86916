-- Additive: older servers begin no sessions by an issuer.

-- Values that count once, for every replica: the states of logins by an issuer, and the ids of logout tokens.
create table sso_used (
  digest bytea primary key,
  -- The value is rejected for its age from then on.
  expires_at timestamptz not null
);
create index sso_used_by_end on sso_used (expires_at);

-- The ID token of the login, sealed. The provider's logout asks for it. Null: too large.
alter table sessions add column sso_id_token_sealed bytea;
create index sessions_by_sso_sid on sessions (issuer_id, sso_sid) where sso_sid is not null;
create index sessions_by_sso_subject on sessions (issuer_id, sso_subject) where sso_subject is not null;

-- The sign-in page lists them.
create index issuers_with_sso on issuers (tenant_id) where enabled and sso is not null;
