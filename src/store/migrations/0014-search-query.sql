-- As before, in a language whose plans are kept: as one of SQL it was planned anew in every search.
create or replace function user_query(tenant_id text, status text, role_name text, needle text) returns tsquery
  -- A page is small: more processes would cost more than they find.
  language plpgsql immutable parallel unsafe as $$
declare
  last integer := greatest(length(needle) - 2, 1);
  wanted text[] := array_remove(array[E'\x01t' || tenant_id, E'\x01s' || status, E'\x01r' || role_name], null);
  lexeme text;
  asked text := '';
begin
  -- Side by side, and the last: what lies across two of them is left to the comparison of texts.
  for i in 1..last by 3 loop
    wanted := wanted || substr(needle, i, 3);
  end loop;
  wanted := wanted || substr(needle, last, 3);
  foreach lexeme in array wanted loop
    asked := asked || case when asked = '' then '' else ' & ' end
      || '''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || case when length(lexeme) < 3 then ''':*' else '''' end;
  end loop;
  return asked::tsquery;
end
$$;
