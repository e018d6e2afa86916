-- Additive: older servers reject the tokens of issuers, and flush their caches when an issuer changes.

-- Authorities whose tokens a tenant accepts.
create table issuers (
  id text primary key,
  tenant_id text not null references tenants (id),
  name text not null,
  kind text not null check (kind in ('oidc', 'spiffe')),
  -- Compared byte for byte with `iss`. Of the kind spiffe: spiffe://<trust domain>
  issuer text not null,
  audiences text[] not null,
  jwks_uri text,
  -- A pasted key set, and when it was pasted.
  jwks jsonb,
  jwks_set_at timestamptz,
  -- A certificate authority in PEM.
  ca text,
  algorithms text[] not null,
  -- Null: at+jwt, JWT and absent. An empty text is an absent type.
  token_types text[],
  required_claims jsonb not null default '[]',
  users jsonb,
  -- Without the client's secret.
  sso jsonb,
  sso_secret_sealed bytea,
  enabled boolean not null default true,
  max_age_seconds integer,
  leeway_seconds integer not null default 5 check (leeway_seconds between 0 and 60),
  -- Tokens with an older `iat` are refused.
  revoked_before timestamptz,
  -- How tokens are judged as well if their `iat` is before `until`: the members before a change that accepts more.
  earlier jsonb,
  -- Tokens with an older `iat` give no roles: the mapping was widened since.
  users_since timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create unique index issuers_enabled_by_issuer on issuers (issuer) where enabled;
create index issuers_by_issuer on issuers (issuer);
create unique index issuers_by_name on issuers (tenant_id, name);

-- The last good key set of an issuer without a pasted one, and the state of its refreshes.
create table issuer_keys (
  issuer_id text primary key references issuers (id) on delete cascade,
  -- Validated. Null: never fetched.
  keys jsonb,
  fetched_at timestamptz,
  next_fetch_at timestamptz not null default clock_timestamp(),
  attempted_at timestamptz,
  -- Why the last attempt failed. Null after a success.
  error text,
  -- Failed attempts since the last success.
  failures integer not null default 0
);
create index issuer_keys_due on issuer_keys (next_fetch_at);

-- Keys that a token of an issuer proves, in place of a secret. Their digest has no text that a client could send.
alter table api_keys add column proof_issuer_id text references issuers (id),
  -- Exact, or a glob.
  add column proof_subject text,
  add column proof_is_glob boolean not null default false,
  add column proof_claims jsonb;
alter table api_keys add constraint api_keys_proof_whole
  check ((proof_issuer_id is null) = (proof_subject is null) and (proof_claims is null) = (proof_subject is null));
create index api_keys_by_proof on api_keys (proof_issuer_id, proof_subject) where proof_issuer_id is not null;
create index api_keys_by_proof_glob on api_keys (proof_issuer_id) where proof_is_glob;

-- The users of an issuer. The first token of a subject may create its user.
alter table users drop constraint users_source_check;
alter table users add constraint users_source_check check (source in ('local', 'ldap') or source like 'issuer:%');
create table user_identities (
  issuer_id text not null references issuers (id),
  subject text not null,
  user_id text not null references users (id) on delete cascade,
  -- The `iat` of the newest token that gave roles. Null: none did.
  roles_as_of timestamptz,
  created_at timestamptz not null default now(),
  primary key (issuer_id, subject)
);
create index user_identities_by_user on user_identities (user_id);
-- `issuer:<id of the issuer>`: roles that the mapping of this issuer gives.
alter table user_roles drop constraint user_roles_source_check;
alter table user_roles add constraint user_roles_source_check
  check (source in ('manual', 'directory') or source like 'issuer:%');

-- Sessions that begin with the token of an issuer, and those of API keys.
alter table sessions alter column user_id drop not null,
  add column api_key_id text references api_keys (id) on delete cascade,
  add column issuer_id text references issuers (id) on delete set null,
  -- Permissions to which a token exchange narrows the session. Null: none.
  add column scope text[],
  -- `sid` and `sub` of the ID token, for a logout by the provider.
  add column sso_sid text,
  add column sso_subject text;
alter table sessions add constraint sessions_of_one check ((user_id is null) <> (api_key_id is null));
create index sessions_by_key on sessions (api_key_id) where api_key_id is not null;
create index sessions_by_issuer on sessions (issuer_id) where issuer_id is not null;

-- The change feed. An issuer is known by its value of `iss`, a link by the issuer's id, a space and the subject.
alter table changes drop constraint changes_kind_check;
alter table changes add constraint changes_kind_check
  check (kind in ('key', 'user', 'session', 'tenant', 'global', 'signing_keys', 'issuer', 'link'));

create function feed_issuer() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    perform feed_append('issuer', old.issuer);
  end if;
  if tg_op <> 'DELETE' then
    perform feed_append('issuer', new.issuer);
  end if;
  return null;
end
$$;
create constraint trigger issuers_feed after insert or update or delete on issuers deferrable initially deferred
  for each row execute function feed_issuer();
create trigger issuers_feed_emptied after truncate on issuers for each statement execute function feed_new_epoch();

-- A refresh that brings the same keys in time changes nothing for a gate.
create function feed_issuer_keys() returns trigger language plpgsql as $$
begin
  perform feed_append('issuer', i.issuer) from issuers i where i.id = new.issuer_id;
  return null;
end
$$;
create constraint trigger issuer_keys_feed after update on issuer_keys deferrable initially deferred for each row
  when (old.keys is distinct from new.keys or old.fetched_at is distinct from new.fetched_at and old.error is not null)
  execute function feed_issuer_keys();
create constraint trigger issuer_keys_feed_new after insert on issuer_keys deferrable initially deferred for each row
  when (new.keys is not null) execute function feed_issuer_keys();

-- A glob belongs to the entry of its issuer, an exact subject to its own entry.
create function feed_proof(issuer_id text, subject text, is_glob boolean) returns void language plpgsql as $$
begin
  if is_glob then
    perform feed_append('issuer', i.issuer) from issuers i where i.id = issuer_id;
  else
    perform feed_append('link', issuer_id || ' ' || subject);
  end if;
end
$$;
create function feed_key_proof() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' and old.proof_issuer_id is not null then
    perform feed_proof(old.proof_issuer_id, old.proof_subject, old.proof_is_glob);
  end if;
  if tg_op <> 'DELETE' and new.proof_issuer_id is not null then
    perform feed_proof(new.proof_issuer_id, new.proof_subject, new.proof_is_glob);
  end if;
  return null;
end
$$;
create constraint trigger api_keys_feed_proof after update on api_keys deferrable initially deferred for each row
  when ((old.proof_issuer_id is not null or new.proof_issuer_id is not null) and (
    old.proof_issuer_id is distinct from new.proof_issuer_id or old.proof_subject is distinct from new.proof_subject
    or old.proof_is_glob is distinct from new.proof_is_glob or old.proof_claims is distinct from new.proof_claims
    or old.revoked_at is distinct from new.revoked_at or old.expires_at is distinct from new.expires_at))
  execute function feed_key_proof();
create constraint trigger api_keys_feed_proof_new after insert on api_keys deferrable initially deferred for each row
  when (new.proof_issuer_id is not null) execute function feed_key_proof();
create constraint trigger api_keys_feed_proof_gone after delete on api_keys deferrable initially deferred for each row
  when (old.proof_issuer_id is not null) execute function feed_key_proof();

create function feed_identity() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    perform feed_append('link', old.issuer_id || ' ' || old.subject);
  end if;
  if tg_op <> 'DELETE' then
    perform feed_append('link', new.issuer_id || ' ' || new.subject);
  end if;
  return null;
end
$$;
create constraint trigger user_identities_feed after insert or update or delete on user_identities deferrable initially deferred
  for each row execute function feed_identity();
create trigger user_identities_feed_emptied after truncate on user_identities for each statement execute function feed_new_epoch();
