-- A one-time token acts for its maker: when the token is used, the maker must still be allowed to act on the token's user. So a token names
-- its maker. Tokens from before this migration name none; they are removed, and administrators issue new ones.
delete from one_time_tokens;
alter table one_time_tokens
  -- null: a server of an older version wrote the row. Such a token is refused.
  add column maker_kind text check (maker_kind in ('user', 'api_key', 'system')),
  -- The maker's own tenant and id; null for 'system', the command line. No foreign key: the row outlives its maker, and is refused then.
  add column maker_tenant_id text,
  add column maker_id text,
  -- The circumstances of the maker's request, for the conditions of policies.
  add column maker_address text,
  add column made_at timestamptz not null default clock_timestamp(),
  add constraint one_time_tokens_maker check (
    case when maker_kind in ('user', 'api_key') then maker_tenant_id is not null and maker_id is not null
    else maker_tenant_id is null and maker_id is null and maker_address is null end
  );
