-- Additive: the sessions of a deleted user stay until upkeep removes them. Older servers delete a user without ending its sessions, which
-- have no effect without their user.
--
-- A user can have millions of refresh tokens. A deletion that removes them in its own transaction does not end within the time limit of a
-- statement.
alter table sessions drop constraint sessions_user_id_fkey;
