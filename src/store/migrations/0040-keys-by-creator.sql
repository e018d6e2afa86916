-- Lists of the keys that a user or a key created.
create index api_keys_by_creator on api_keys (created_by, expiry_month, revoked, id) include (expires_at);
