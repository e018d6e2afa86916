-- A connection keeps the plans of these functions. Made while a table was nearly empty, as each minute's windows are at first, a plan
-- would read the whole table for each row of a batch: a second for 2,500 windows, in which no check that waits for a lease is answered.

alter function metering_lease_rates(text[], bigint[], bigint[], bigint[], bigint[]) set enable_seqscan = off;
alter function metering_lease_tokens(text, bigint, text[], text[], bigint[], bigint[], bigint[], bigint[]) set enable_seqscan = off;
alter function metering_settle(text, jsonb) set enable_seqscan = off;
alter function metering_change_reservations(text[], text[], bigint[], double precision) set enable_seqscan = off;
alter function metering_lock_collections(text) set enable_seqscan = off;
alter function metering_reserve_collection set enable_seqscan = off;
