-- Additive: older servers do not use this index.

-- Searches and filters of the budgets of all tenants. The words of the filters are marked, as the roles of users are.
create index budgets_by_lexeme on budgets using gin (user_lexemes('', '', array[unit, period, action, enabled::text], lower(name)))
  with (fastupdate = off);
