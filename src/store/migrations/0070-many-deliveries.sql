-- Additive: older servers keep the deliveries of a deleted webhook until they are 30 days old.

-- A webhook is deleted without its deliveries, which may be very many. Upkeep removes them.
alter table webhook_deliveries drop constraint webhook_deliveries_webhook_id_fkey;

create index webhook_deliveries_by_state on webhook_deliveries (webhook_id, state, id);
