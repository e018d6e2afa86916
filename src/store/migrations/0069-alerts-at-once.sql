-- Additive: older servers call the same function.
--
-- As before, in one statement for all counters of a booking. Budgets are locked in the order of their ids, and only against their deletion,
-- which would otherwise fail the booking.
create or replace function metering_note_alerts(tenants text[], periods text[], amounts bigint[]) returns void language plpgsql as $$
begin
  with counters as materialized (
    select c.tenant_id, l.budget_id, c.period, c.spent, l.limit_amount, l.alerts,
      array(select o.threshold from budget_alerts o where o.tenant_id = c.tenant_id and o.period = c.period) as noted
    from unnest(tenants, periods, amounts) as c(tenant_id, period, spent) cross join lateral (
      select b.id as budget_id, b.limit_amount, b.alerts from budgets b
      -- Found by its id, never by the index of the tenant's names.
      where b.id = split_part(split_part(c.period, ' ', 1), '/', 1) and b.tenant_id collate "C" = c.tenant_id and b.enabled
        and b.alerts <> '[]' and cast(b.epoch as text) = split_part(c.period, '#', 2)
      union all
      select null, cast(cast(t.quotas ->> 'monthly_tokens' as numeric) as bigint), '[0.8, 1]' from tenants t
      where t.id = c.tenant_id and c.period ~ '^[0-9]{4}-[0-9]{2}$'
    ) l
    where coalesce(metering_kept_until(c.period) >= current_date, true)
  ), reached as materialized (
    select c.tenant_id, c.budget_id, c.period, a.threshold, c.spent, c.limit_amount
    from counters c cross join lateral (select cast(value as numeric) as threshold from jsonb_array_elements(c.alerts)) a
    where c.spent >= a.threshold * c.limit_amount and cast(a.threshold as double precision) <> all (c.noted)
  ), kept as materialized (
    select b.id from (select distinct r.budget_id from reached r order by 1) r
    cross join lateral (select o.id from budgets o where o.id = r.budget_id for key share) b
  )
  insert into budget_alerts (tenant_id, budget_id, period, threshold, spent, limit_amount)
  select r.tenant_id, r.budget_id, r.period, r.threshold, r.spent, r.limit_amount from reached r
  where r.budget_id is null or r.budget_id in (select k.id from kept k)
  order by 1, 3, 4
  on conflict do nothing;
end
$$;
alter function metering_note_alerts set enable_seqscan = off;
