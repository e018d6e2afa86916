-- Additive: older servers keep keys that have ended, and do not need the index.

-- Keys that ended long ago are removed, the longest first. `least` skips nulls: a key ends when it is revoked or expires, whichever is first.
create index api_keys_by_end on api_keys (least(revoked_at, expires_at));
