/** The people in every directory of the tests: the same people in the same groups, in all kinds of directory. */

import { dnValue } from './ldif.ts';

/** Complex enough for Active Directory's default rules. */
export const PASSWORD = 'Secret-Pass1';
export const SERVICE_PASSWORD = 'Service-Pass1';
export const WRONG_PASSWORD = 'Wrong-Pass1';
/** Members of `everyone`, people included. */
export const EVERYONE = 3_000;

/** The states of an unusable account. Each kind of directory has its own form, and not every kind has every state. */
export type AccountState = 'disabled' | 'account_expired' | 'password_expired' | 'must_change';

export interface Person {
  /** The username that a person types. */
  readonly login: string;
  readonly cn: string;
  readonly sn: string;
  readonly password: string;
  readonly state?: AccountState;
  /** True if `cn` names the entry in directories that name the others by `uid`. */
  readonly namedByCn?: boolean;
  /** A POSIX number of `operators`; its primary group in Active Directory. */
  readonly primaryGroup?: 'operators';
}

const person = (login: string, cn: string, more: Partial<Person> = {}): Person => ({
  login,
  cn,
  sn: cn.split(' ').at(-1) ?? cn,
  password: PASSWORD,
  ...more,
});

export const PEOPLE = {
  alice: person('alice', 'Alice Adams'),
  bob: person('bob', 'Bob Brown'),
  disabled: person('disabled', 'Dis Abled', { state: 'disabled' }),
  expired: person('expired', 'Ex Pired', { state: 'account_expired' }),
  oldPassword: person('oldpassword', 'Old Password', { state: 'password_expired' }),
  mustChange: person('mustchange', 'Must Change', { state: 'must_change' }),
  locked: person('locked', 'Locked Out'),
  nested: person('nina', 'Nina Nested'),
  primary: person('petra', 'Petra Primary', { primaryGroup: 'operators' }),
  big: person('bea', 'Bea Big'),
  renamed: person('rene', 'Rene Old'),
  moved: person('mona', 'Mona Mover'),
  sameName: person('sam', 'Sam Same'),
  cycle: person('cyd', 'Cyd Cycle'),
  escaped: person('jdoe', 'Doe, Jane (Ops)', { namedByCn: true, sn: 'Doe' }),
  umlaut: person('jürgen', 'Jürgen Müßig', { namedByCn: true }),
  cyrillic: person('ольга', 'Ольга Иванова', { namedByCn: true }),
  symbols: person('sybil', 'Sybil Symbols', { password: '()*\\-Pass1' }),
  unicode: person('pavel', 'Pavel Unicode', { password: 'Пароль-Grüße-1' }),
  unique: person('uma', 'Uma Unique'),
  posix: person('paul', 'Paul Posix'),
  /** The user that injections try to become. */
  admin: person('admin', 'Ad Min'),
} satisfies Readonly<Record<string, Person>>;

export type PersonKey = keyof typeof PEOPLE;
export const PERSON_KEYS = Object.keys(PEOPLE).filter((key): key is PersonKey => key in PEOPLE);

export interface Group {
  readonly cn: string;
  readonly people: readonly PersonKey[];
  readonly groups?: readonly string[];
  /** The branch of the tree: beside the other groups, or another one. */
  readonly elsewhere?: boolean;
}

/** Of `member`, by whole DNs. An inner group is named by its `cn`. Those of a cycle come in any order. */
export const GROUPS: readonly Group[] = [
  {
    cn: 'engineers',
    people: ['alice', 'nested', 'escaped', 'umlaut', 'cyrillic', 'renamed', 'moved', 'symbols', 'unicode'],
  },
  { cn: 'staff', people: ['bob'], groups: ['engineers'] },
  { cn: 'all-hands', people: [], groups: ['staff'] },
  { cn: 'ring-a', people: ['cycle'], groups: ['ring-b'] },
  { cn: 'ring-b', people: ['bob'], groups: ['ring-a'] },
  { cn: 'R, D (core)', people: ['escaped'] },
  { cn: 'admins', people: ['sameName'], elsewhere: true },
  { cn: 'admins', people: ['admin'] },
];
/** The number of `operators`, and the only attribute by which its member belongs to it. */
export const OPERATORS_GID = '5001';

export interface Places {
  readonly suffix: string;
  readonly people: string;
  readonly groups: string;
  /** The branch with `everyone`. */
  readonly large: string;
  readonly elsewhere: string;
  /** The branch that a person moves to. */
  readonly archive: string;
}

export function groupDn(places: Places, cn: string, elsewhere = false): string {
  return `cn=${dnValue(cn)},${elsewhere ? places.elsewhere : cn === 'everyone' ? places.large : places.groups}`;
}

/** In the directories that name people by `uid`. */
export function uidDn(places: Places, one: Person): string {
  return `${one.namedByCn === true ? `cn=${dnValue(one.cn)}` : `uid=${dnValue(one.login)}`},${places.people}`;
}

/** Returns the names of the entries that only fill the directory. */
export function crowdNames(): string[] {
  return Array.from({ length: EVERYONE - 1 }, (_, i) => `crowd${i}`);
}
