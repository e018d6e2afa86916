-- Additive: a new kind of count, a column and a table that older servers do not read.
-- Failed logins of one account from one address, and the addresses from which an account logged in.

alter table login_failures
  drop constraint login_failures_scope_check,
  add constraint login_failures_scope_check check (scope in ('pair', 'account', 'address')),
  -- The account of a pair, by its SHA-256.
  add column account bytea;
create index login_failures_by_account on login_failures (account) where scope = 'pair';
create index login_failures_locked_pairs on login_failures (locked_until) where scope = 'pair' and locked_until is not null;

-- The SHA-256 of an account and of an address. An account's own addresses stay usable while failures from others lock it.
create table login_addresses (
  account bytea not null,
  address bytea not null,
  last_login_at timestamptz not null,
  primary key (account, address)
);
create index login_addresses_by_age on login_addresses (last_login_at);
