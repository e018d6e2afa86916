-- Names and metadata of API keys, and the search for keys by text and by prefix. docs/decisions/0010-lists.md says how lists stay fast.

-- The text that a search reads. A line break separates the fields, so that no text is found across two of them.
create function key_search_text(name text, description text, metadata jsonb) returns text
  language plpgsql immutable parallel safe as $$
begin
  return lower(coalesce(name, '') || E'\n' || description
    || coalesce((select string_agg(E'\n' || m.key || E'\n' || m.value, '' order by m.key collate "C") from jsonb_each_text(metadata) m), ''));
end
$$;

alter table api_keys
  add column name text,
  add column metadata jsonb not null default '{}',
  -- Imported as a digest: the credential has no checksum, and its form is another system's.
  add column imported boolean not null default false;
alter table api_keys
  add column search_text text not null generated always as (key_search_text(name, description, metadata)) stored;

-- The lexemes of users, with the owner in the place of the status. No function of its own: an index is built with an empty search path.
create index api_keys_by_lexeme on api_keys using gin (user_lexemes(tenant_id, coalesce(user_id, ''), '{}', search_text))
  with (gin_pending_list_limit = 256);

-- A prefix that few keys have is found here. A prefix that many keys have is found in the order of the list.
create index api_keys_by_prefix on api_keys ((prefix collate "C"), tenant_id);
