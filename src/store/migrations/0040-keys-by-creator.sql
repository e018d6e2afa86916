-- Additive: an index for lists of the keys that a user or a key created. Older servers use no such filter.
create index api_keys_by_creator on api_keys (created_by, expiry_month, revoked, id) include (expires_at);
