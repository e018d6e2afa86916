-- Additive: feed_newest returns what it did.

-- PostgreSQL 14 to 16 plan max(seq) of a nearly empty feed as a read of all its rows, and a connection keeps that plan.
create or replace function feed_newest() returns bigint language plpgsql stable set enable_seqscan = off as $$
begin
  return (select c.seq from changes c order by c.seq desc limit 1);
end
$$;
