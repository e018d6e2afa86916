-- Additive: an older server reads and writes none of this. It books a response that goes on by the text of its answer, as before.
--
-- Responses that go on after their answer (`"background": true`): the answer tells no usage, so the request is booked with the estimate of
-- its prompt and the bound of its answer. A later request for the response may tell its usage, which corrects the booking once.
--
-- Locks: pending_responses comes after collection_reservations, and token_budgets is then locked already for every tenant that books.

create table pending_responses (
  tenant_id text not null,
  -- As the upstream calls it.
  response_id text not null,
  made_at timestamptz not null default clock_timestamp(),
  -- As it was booked.
  period text not null,
  day date not null,
  model text not null,
  key_id text not null,
  user_id text not null,
  prompt_tokens bigint not null,
  completion_tokens bigint not null,
  primary key (tenant_id, response_id)
);
create index pending_responses_by_age on pending_responses (tenant_id, made_at);
create index pending_responses_by_time on pending_responses (made_at);

-- The id of a response that is not complete; with books = false, of one that is, and the usage that it tells.
alter type metering_entry add attribute response text;

-- Takes down the responses that are not complete, and returns what corrects the bookings of those that are. Each tenant keeps its last
-- 10,000, for 7 days. A booking without its row stays as it is.
create function metering_pending_responses(entries metering_entry[]) returns metering_entry[] language plpgsql as $$
declare
  corrections metering_entry[] := '{}';
  tenant text;
  e metering_entry;
  p pending_responses;
begin
  insert into pending_responses (tenant_id, response_id, period, day, model, key_id, user_id, prompt_tokens, completion_tokens)
  select i.tenant_id, i.response, i.period, i.day, i.model, i.key_id, i.user_id, i.prompt_tokens, i.completion_tokens
  from unnest(entries) i where i.books order by 1, 2 on conflict do nothing;
  for tenant in
    select distinct i.tenant_id from unnest(entries) i where i.books order by 1
  loop
    delete from pending_responses r where r.ctid = any (array(
      select o.ctid from pending_responses o where o.tenant_id = tenant order by o.made_at desc offset 10000));
  end loop;
  delete from pending_responses r where r.ctid = any (array(
    select o.ctid from pending_responses o where o.made_at < clock_timestamp() - interval '7 days'
    order by o.made_at limit 100 for update skip locked));
  for e in
    select * from unnest(entries) i where not i.books order by i.tenant_id, i.response, i.n
  loop
    delete from pending_responses r
    where r.tenant_id = e.tenant_id and r.response_id = e.response and r.made_at >= clock_timestamp() - interval '7 days'
    returning r.* into p;
    continue when not found;
    corrections := corrections
      || jsonb_populate_record(null::metering_entry, to_jsonb(p) || jsonb_build_object('requests', 0, 'books', true, 'estimated', true,
        'prompt_tokens', -p.prompt_tokens, 'completion_tokens', -p.completion_tokens, 'cached_tokens', 0,
        'total_tokens', -(p.prompt_tokens + p.completion_tokens)))
      || jsonb_populate_record(null::metering_entry, to_jsonb(p) || jsonb_build_object('requests', 0, 'books', true, 'estimated', false,
        'prompt_tokens', e.prompt_tokens, 'completion_tokens', e.completion_tokens, 'cached_tokens', e.cached_tokens,
        'total_tokens', e.total_tokens));
  end loop;
  return corrections;
end
$$;
alter function metering_pending_responses set enable_seqscan = off;

-- As before, and responses that are not complete.
create or replace function metering_settle(settler text, entries jsonb, out booked integer, out unknown integer) language plpgsql as $$
declare
  items metering_entry[];
  fresh integer[] := '{}';
  g record;
  seen bytea;
  corrections metering_entry[];
begin
  select coalesce(array_agg(e order by e.n), '{}') into items
  from jsonb_populate_recordset(null::metering_entry, entries) e where exists (select from metering_holders h where h.id = e.holder);
  unknown := jsonb_array_length(entries) - cardinality(items);
  for g in
    select e.holder, e.counter / 1024 as block, array_agg((e.counter % 1024)::integer order by e.n) as bits,
      array_agg(e.n order by e.n) as places
    from unnest(items) e group by 1, 2 order by 1, 2
  loop
    select s.bits into seen from settlements s where s.holder = g.holder and s.block = g.block for update;
    if not found then
      insert into settlements as s (holder, block, bits) values (g.holder, g.block, decode(repeat('00', 128), 'hex'))
      on conflict (holder, block) do update set settled_at = clock_timestamp()
      returning s.bits into seen;
    end if;
    for i in 1 .. cardinality(g.bits) loop
      if get_bit(seen, g.bits[i]::bigint) = 0 then
        seen := set_bit(seen, g.bits[i]::bigint, 1);
        fresh := fresh || g.places[i];
      end if;
    end loop;
    update settlements s set bits = seen, settled_at = clock_timestamp() where s.holder = g.holder and s.block = g.block;
  end loop;
  perform metering_book((select coalesce(array_agg(e), '{}') from unnest(items) e where e.n = any (fresh)));
  perform metering_count_collections(items, fresh);
  corrections := metering_pending_responses((select coalesce(array_agg(e order by e.n), '{}') from unnest(items) e
    where e.response is not null and e.n = any (fresh)));
  perform metering_book(corrections);
  -- Booking adds to what is spent; a correction may take from it.
  update token_budgets b set spent = greatest(0, b.spent + c.change)
  from (select e.tenant_id, e.period, sum(e.total_tokens) as change from unnest(corrections) e group by 1, 2
    having sum(e.total_tokens) < 0 order by 1, 2) c
  where b.tenant_id = c.tenant_id and b.period = c.period;
  insert into settlement_news (holder, counters, totals)
  select e.holder, array_agg(e.counter order by e.n), array_agg(e.total_tokens order by e.n) from unnest(items) e
  where e.held and e.holder <> settler and e.n = any (fresh)
  group by 1 order by 1;
  booked := cardinality(fresh);
end
$$;
alter function metering_settle(text, jsonb) set enable_seqscan = off;
