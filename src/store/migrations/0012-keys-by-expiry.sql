-- With the expiry itself at hand, a page of keys is found in the index alone, also in the months of which only a part is asked for.
-- Nothing else comes along: an index that told everything of a user's keys would be read whole where the first in order are asked for.

drop index api_keys_by_expiry, api_keys_by_tenant_expiry, api_keys_by_user_expiry;
create index api_keys_by_expiry on api_keys (expiry_month, revoked, id) include (expires_at);
create index api_keys_by_tenant_expiry on api_keys (tenant_id, expiry_month, revoked, id) include (expires_at);
create index api_keys_by_user_expiry on api_keys (user_id, expiry_month, revoked, id) include (expires_at) where user_id is not null;
