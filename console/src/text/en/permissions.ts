/** Permissions in plain words, and what grants cover. */

/**
 * In plain words, to follow "may". Which permissions exist, the server says: it may have others, or lack some of these.
 */
const MEANINGS: Readonly<Record<string, string>> = {
  'chat:read': 'read chat history',
  'chat:write': 'send chat and completion requests',
  'embeddings:write': 'make embeddings',
  'models:read': 'see models',
  'models:write': 'add and change models',
  'rag:read': 'read collections',
  'rag:query': 'search in collections',
  'rag:write': 'add and change documents and collections',
  'agents:read': 'see agents',
  'agents:run': 'run agents',
  'agents:write': 'add and change agents',
  'finetuning:read': 'see fine-tuning jobs',
  'finetuning:write': 'start and change fine-tuning jobs',
  'images:write': 'make and edit images',
  'audio:write': 'make and transcribe speech',
  'files:read': 'read files',
  'files:write': 'add and delete files',
  'batches:read': 'see batches',
  'batches:write': 'start and cancel batches',
  'moderations:write': 'have texts moderated',
  'rerank:write': 'rank documents anew',
  'audit:read': 'read the audit log',
  'usage:read': 'see usage, limits and decisions',
  'usage:write': 'report usage',
  'admin:users': 'manage users',
  'admin:roles': 'manage roles',
  'admin:policies': 'manage policies and explain requests',
  'admin:issuers': 'manage issuers and test their tokens',
  'admin:budgets': 'manage budgets',
  'admin:webhooks': 'manage webhooks and see what they sent',
  'admin:keys': 'manage the API keys of the tenant',
  'admin:tenants': 'manage tenants (platform administrators only)',
};

const RESOURCES: Readonly<Record<string, string>> = {
  chat: 'chat',
  embeddings: 'embeddings',
  models: 'models',
  rag: 'collections',
  agents: 'agents',
  finetuning: 'fine-tuning',
  images: 'images',
  audio: 'audio',
  files: 'files',
  batches: 'batches',
  moderations: 'moderation',
  rerank: 'ranking',
  audit: 'the audit log',
  usage: 'usage',
  admin: 'administration',
};

function joined(parts: readonly string[]): string {
  return new Intl.ListFormat('en', { type: 'conjunction' }).format(parts);
}

export const permissions = {
  /** Undefined: the server knows more of it than these words. */
  meaning: (pattern: string): string | undefined => {
    const [resource = '', action] = pattern.split(':');
    if (pattern === '*' || pattern === '*:*') return 'do everything';
    if (resource === '*') return `${action} everything`;
    if (action === '*') return permissions.everythingWith([resource]);
    return MEANINGS[pattern];
  },
  everythingWith: (resources: readonly string[]): string =>
    `do everything with ${joined(resources.map((resource) => RESOURCES[resource] ?? resource))}`,
  manyMore: (n: number) => `${n} more`,
  actions: (n: number, isPart: boolean) => `${isPart ? 'at least ' : ''}${n === 1 ? '1 action' : `${n} actions`}`,
  covers: (n: number, isPart: boolean) => {
    if (n === 0)
      return isPart ? 'Covers none of the actions that are listed here.' : 'Covers no action that anything needs.';
    return `Covers ${isPart ? 'at least ' : ''}${n === 1 ? '1 action' : `${n} actions`}:`;
  },
  unneeded: (patterns: readonly string[]) =>
    `No route and no endpoint needs what ${joined(patterns)} ${patterns.length === 1 ? 'names' : 'name'}. Such a pattern has no effect.`,
  within: (pattern: string) => `in ${pattern}`,
  notAPattern: 'Write *, or resource:action in lower case. Either part may be *, and * replaces the whole part.',
  needing: (route: string, others: number) => (others < 1 ? `call ${route}` : `call ${route} and ${others} more`),
  any: { models: 'any model', collections: 'any collection', agents: 'any agent' },
  noneOf: { models: 'no model', collections: 'no collection', agents: 'no agent' },
  only: (kind: 'models' | 'collections' | 'agents', names: string) => `only ${kind} ${names}`,
  list: joined,
} as const;
