-- Additive: older servers count with a limit of 100 and do not write the column.

-- The limit with which the row was counted last. A returned attempt unlocks the subject unless its failures exceed it.
alter table login_failures add column max_failures integer not null default 100;
