-- Additive: older servers do not use this index.

-- Decisions in shadow mode that share an `x-request-id`. The other gate's outcome is not known for any of them.
create index recent_decisions_by_client_request on recent_decisions (client_request_id) where client_request_id is not null;
