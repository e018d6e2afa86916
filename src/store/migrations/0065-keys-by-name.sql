-- Additive: older servers do not use these indexes.

-- The order of lists of keys by name, of a tenant and of all tenants.
create index api_keys_by_name on api_keys ((lower(name) collate "C"), id) where name is not null;
create index api_keys_by_tenant_name on api_keys (tenant_id, (lower(name) collate "C"), id) where name is not null;
