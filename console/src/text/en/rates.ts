/** Rates by model: of a tenant, a key or a user. */
export const rates = {
  title: 'Rates by model',
  hints: {
    tenant: 'For all requests of the tenant together. The most specific pattern counts for each number.',
    key: 'For the requests of this key. The limits of its owner and of the tenant count as well.',
    user: 'For all requests of this user and of its keys together. The limits of the tenant count as well.',
  },
  rate: (n: number) => `Rate ${n}`,
  remove: (n: number) => `Remove rate ${n}`,
  add: 'Add a rate',
  models: 'Models',
  modelsHint: 'Names or patterns with *. Press Enter after each.',
  requests: 'Requests a minute',
  tokens: 'Tokens a minute',
  parallel: 'At the same time',
  noLimit: 'no limit',
  needs: 'A rate needs a model and a number.',
  globFaults: {
    empty: 'A pattern has at least one character.',
    long: 'A pattern has at most 256 characters.',
    stars: 'A pattern has at most 8 stars.',
    control: 'A pattern holds no control characters.',
  },
  of: (models: string, limits: string) => `${models}: ${limits}`,
  said: {
    requests: (n: string) => `${n} requests a minute`,
    tokens: (n: string) => `${n} tokens a minute`,
    parallel: (n: string) => `${n} at the same time`,
  },
} as const;
