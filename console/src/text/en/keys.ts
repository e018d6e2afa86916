/** API keys. */
export const keys = {
  title: 'API keys',
  search: 'Search keys',
  searchFor: 'Name, description, metadata or psk_ prefix',
  status: 'Status',
  filters: { all: 'All', active: 'Active', expiring: 'Expiring soon', expired: 'Expired', revoked: 'Revoked' },
  states: { active: 'Active', expired: 'Expired', revoked: 'Revoked' },
  lag: 'Last use is true to the minute',
  name: 'Name',
  key: 'Key',
  owner: 'Owner',
  scopes: 'Scopes',
  lastUse: 'Last use',
  expires: 'Expires',
  state: 'State',
  empty: 'This tenant has no keys',
  emptySays: 'A key lets a program call the platform, with the scopes, models and limits that you give it.',
} as const;
