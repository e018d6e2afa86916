-- Additive: older servers send no charge for an end that is not booked, and call the same function.
--
-- As before, and an end that is not booked may be charged: a budget of requests counts a request whose answer reported no usage.
create or replace function metering_charge(entries metering_entry[]) returns void language plpgsql as $$
declare
  tenants text[];
  periods text[];
  amounts bigint[];
begin
  with counted as (
    select e.tenant_id, e.period, e.total_tokens as amount from unnest(entries) e where e.books
    union all
    select e.tenant_id, substr(c.word, 2), case left(c.word, 1) when 'm' then e.cost when 't' then e.total_tokens else coalesce(e.requests, 1) end
    from unnest(entries) e cross join unnest(e.charges) as c(word)
  ), changed as (
    insert into token_budgets as b (tenant_id, period, spent)
    select tenant_id, period, least(sum(amount), 9007199254740991) from counted group by 1, 2 having sum(amount) <> 0 order by 1, 2
    on conflict (tenant_id, period) do update set spent = greatest(0, least(b.spent + excluded.spent, 9007199254740991))
    returning b.tenant_id, b.period, b.spent
  )
  select array_agg(c.tenant_id), array_agg(c.period), array_agg(c.spent) into tenants, periods, amounts from changed c;
  if 0 > any (amounts) then
    -- The counter was removed before its correction.
    update token_budgets b set spent = 0 from unnest(tenants, periods, amounts) as c(tenant_id, period, spent)
    where c.spent < 0 and b.tenant_id = c.tenant_id and b.period = c.period;
  end if;
  perform metering_note_alerts(tenants, periods, amounts);
end
$$;
alter function metering_charge set enable_seqscan = off;
