-- A removed collection is given back once: a platform may answer a repeated removal, or the removal of a name that never existed, as if
-- it had removed something. Which names a tenant's creations had is unknown, so a name that was given back counts as created again only
-- if a creation was counted since, and each creation serves one removal.

-- The number of its last counted creation.
alter table collection_counts add column created bigint not null default 0;
-- Of the creations that no removal was matched with, the numbers of the last 100, in order.
alter table collection_counts add column unmatched bigint[] not null default '{}';

-- The last 1,000 names of each tenant that were given back.
create table collection_removals (
  tenant_id text not null,
  -- A digest of the name.
  collection bigint not null,
  -- How many creations had been counted by then.
  created bigint not null,
  primary key (tenant_id, collection)
);
create index collection_removals_by_age on collection_removals (tenant_id, created);

-- Of a removal, the digest of the collection's name; null where an older server booked it.
alter type metering_entry add attribute collection bigint;

-- What became of creations and removals: reservations go, counts follow, in the order in which the ends were heard of. A batch reads and
-- writes a tenant's count once.
create or replace function metering_count_collections(entries metering_entry[], fresh integer[]) returns void language plpgsql as $$
declare
  tenant text;
  e record;
  c record;
  -- Of the name's last removal that gave one back.
  since bigint;
  place integer;
begin
  for tenant in
    select distinct i.tenant_id from unnest(entries) i where i.collections is not null order by 1
  loop
    perform metering_lock_collections(tenant);
    select t.count, t.created, t.unmatched into c from collection_counts t where t.tenant_id = tenant;
    for e in
      select i.collections, i.collection from unnest(entries) i
      where i.tenant_id = tenant and i.collections <> 0 and i.n = any (fresh) order by i.n
    loop
      if e.collections > 0 then
        c.count := c.count + 1;
        c.created := c.created + 1;
        c.unmatched := (c.unmatched || c.created)[greatest(1, cardinality(c.unmatched) - 98):];
        continue;
      end if;
      continue when c.count = 0;
      select r.created into since from collection_removals r where r.tenant_id = tenant and r.collection = e.collection;
      if found then
        -- The oldest creation that may have been this name's.
        select min(u.n) into place from unnest(c.unmatched) with ordinality as u(made, n) where u.made > since;
        continue when place is null;
      else
        -- Collections that were counted in another way are older than all creations.
        place := case when cardinality(c.unmatched) >= c.count then 1 end;
      end if;
      c.count := c.count - 1;
      if place is not null then
        c.unmatched := c.unmatched[:place - 1] || c.unmatched[place + 1:];
      end if;
      if e.collection is not null then
        insert into collection_removals as r (tenant_id, collection, created) values (tenant, e.collection, c.created)
        on conflict (tenant_id, collection) do update set created = excluded.created;
      end if;
    end loop;
    update collection_counts t set count = c.count, created = c.created, unmatched = c.unmatched
    where t.tenant_id = tenant and (t.count, t.created) <> (c.count, c.created);
    delete from collection_removals r where r.ctid = any (array(
      select o.ctid from collection_removals o where o.tenant_id = tenant order by o.created desc offset 1000));
  end loop;
  delete from collection_reservations r using unnest(entries) i
  where i.collections is not null and r.holder = i.holder and r.counter = i.counter;
end
$$;
