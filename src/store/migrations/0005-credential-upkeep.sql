-- What has lost its use is found by when it did. Neither index is on a column that a refresh changes.
create index sessions_by_end on sessions ((coalesce(ended_at, expires_at)));
create index one_time_tokens_by_expiry on one_time_tokens (expires_at);

-- Failures are counted for a quarter of an hour. A server that crashes may forget them, and no login waits for the disk because of them.
alter table login_failures set unlogged;
