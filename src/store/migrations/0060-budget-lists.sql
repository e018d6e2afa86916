-- Additive: older servers do not use this index.

-- The budgets of all tenants, in the order of their list.
create index budgets_by_any_name on budgets (name collate "C", tenant_id collate "C");
