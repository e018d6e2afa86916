-- Additive: the first allow of each principal, route and model of a day among recent decisions. Older servers leave the column empty.
alter table recent_decisions add column first_of text collate "C";
-- Each gate records its own first allow. The index keeps one of them, and finds those of a tenant for their bound.
create unique index recent_decisions_firsts on recent_decisions (tenant_id, first_of) where first_of is not null;
