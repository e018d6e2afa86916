/** The effect of a change of policies or roles. */

const plural = (n: number, one: string, many: string): string => `${n.toLocaleString('en')} ${n === 1 ? one : many}`;
const both = (users: number, keys: number): string =>
  `${plural(users, 'user', 'users')} and ${plural(keys, 'key', 'keys')}`;

export const difference = {
  title: 'If you save this',
  titleDeleted: 'If you delete it',
  nothing: 'Change something: the requests that it would deny or allow are listed here before you save.',
  notYet: (fault: string) => `The draft cannot be compared yet. ${fault}`,
  denied: (reason: string) => `What it would deny or allow is not shown. ${reason}`,
  computing: 'Compares the rules with and without the change.',
  failed: 'What this would deny or allow could not be computed. Nothing is known about its effect.',
  unchanged: 'No request would be decided differently.',
  incomplete: 'This list is not complete, and there may be more.',
  ofTenant: 'For this tenant only. A policy for all tenants acts in the others as well.',
  lists: {
    requests: { denied: 'Newly denied', allowed: 'Newly allowed' },
    management: { denied: 'Newly denied in the management API', allowed: 'Newly allowed in the management API' },
  },
  usersAndKeys: (users: number, keys: number) => {
    if (keys === 0) return plural(users, 'user', 'users');
    return users === 0 ? plural(keys, 'key', 'keys') : both(users, keys);
  },
  touched: (users: number, keys: number) => `${both(users, keys)} are touched.`,
  fall: (n: number, isBound: boolean) => {
    if (n === 0) return 'None of their metered requests of the last 7 days would be denied.';
    return `${isBound ? 'Up to ' : ''}${n.toLocaleString('en')} of their metered requests of the last 7 days would be denied.`;
  },
  fallUnknown: 'There is too much usage to count their requests of the last 7 days.',
  requests: (n: number, isBound: boolean) =>
    `${isBound && n > 0 ? 'up to ' : ''}${plural(n, 'request', 'requests')} in the last 7 days`,
  recorded: (checked: number, changed: number, sampled: boolean) =>
    `Of ${plural(checked, 'recorded decision', 'recorded decisions')} of the last 24 hours${sampled ? ', which are a sample' : ''}, ${changed.toLocaleString('en')} would be decided differently.`,
  barComputing: 'Computing what it changes',
  barFailed: 'Its effect is not known.',
  barIncomplete: 'Its effect is not known in full.',
  barUnchanged: 'No request changes.',
  barTouches: (users: number, keys: number) => `Changes requests of ${both(users, keys)}.`,
  see: 'See what changes',
  more: (n: number) => `Show ${n.toLocaleString('en')} more`,
  explain: 'Explain one of them',
  newTab: 'in a new tab',
  by: (rule: string) => `by ${rule}`,
  may: { denied: 'may no longer', allowed: 'may now' },
  everyone: 'Everyone',
  noResource: 'without a resource',
  amongHolders: 'among the holders of',
  without: 'without',
  onThemselves: 'on themselves',
  on: 'on',
  or: 'or',
  oneOfThem: 'and among them',
  also: 'that match',
  kinds: { models: 'models', collections: 'collections', agents: 'agents' },
  any: { models: 'any model', collections: 'any collection', agents: 'any agent' },
  unnamed: { models: 'no named model', collections: 'no named collection', agents: 'no named agent' },
  except: 'except',
  from: 'from',
  outside: 'outside',
  unknownAddress: 'an unknown address',
  anyKnownAddress: 'any known address',
  alsoDuring: 'and at the same time',
  week: (timezone: string) => `The week in ${timezone}`,
  tryTitle: 'Try a request',
  trySays: 'It is decided twice: as things are, and with this draft. Nothing is counted or sent on.',
  tryOpen: 'Choose a request',
  tryIt: 'Try it',
  tryStale: 'The draft or the request changed since.',
  tryNow: 'As things are',
  tryThen: 'With this draft',
  outcomes: { allow: 'allowed', deny: 'denied' },
  weekOf: (windows: string) => `Lit hours: ${windows}`,
} as const;
