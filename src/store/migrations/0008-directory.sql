-- Users of a directory: who they are there. The name of the configured directory and the id that it never changes name one user for good,
-- so whoever is renamed or moved there stays the same user here. The name that was typed is kept nowhere.
alter table users
  add column directory text,
  add column directory_id text,
  add constraint users_directory_whole check ((directory is null) = (directory_id is null)),
  add constraint users_directory_source check (directory is null or source = 'ldap');
create unique index users_directory_key on users (directory, directory_id) where directory is not null;
