import { counted } from './counted.ts';

/** Limits by model: of a tenant, a key or a user. */
export const rates = {
  title: 'Limits by model',
  hints: {
    tenant:
      'For all requests of the tenant together. The models of one limit share its numbers, and the most specific pattern counts.',
    key: 'For the requests of this key. The limits of its owner and of the tenant count as well.',
    user: 'For all requests of this user and of its keys together. The limits of the tenant count as well.',
  },
  rate: (n: number) => `Limit ${n}`,
  remove: (n: number) => `Remove limit ${n}`,
  add: 'Add a limit',
  models: 'Models',
  modelsHint: 'Names or patterns with *. Press Enter after each.',
  requests: 'Requests a minute',
  tokens: 'Tokens a minute',
  parallel: 'At the same time',
  noLimit: 'no limit',
  needs: 'A limit by model needs a model and a number.',
  globFaults: {
    empty: 'A pattern has at least one character.',
    long: 'A pattern has at most 256 characters.',
    stars: 'A pattern has at most 8 stars.',
    control: 'A pattern holds no control characters.',
  },
  said: {
    requests: (n: string) => `${counted(n, 'request')} a minute`,
    tokens: (n: string) => `${counted(n, 'token')} a minute`,
    parallel: (n: string) => `${n} at the same time`,
  },
} as const;
