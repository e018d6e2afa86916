-- Additive: older servers do not use this column.

-- When the issuer last took its value of `iss`, or took it back by being enabled. Null: when it was made.
alter table issuers add column value_since timestamptz;
