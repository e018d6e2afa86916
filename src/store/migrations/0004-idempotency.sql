-- Answers to requests that carried an Idempotency-Key, kept for a day, written in the transaction of the change that they tell of.

create table idempotent_answers (
  -- SHA-256 of tenant, principal, path and key
  id bytea primary key,
  -- HMAC-SHA-256 of query and body under the key: the same key with another request is a mistake of the client's
  fingerprint bytea not null,
  -- JSON as it was answered, but for secrets, which are kept nowhere
  answer text not null,
  answered_at timestamptz not null default clock_timestamp()
);
create index idempotent_answers_by_time on idempotent_answers (answered_at);
