/** Who logs in by a directory in the benchmarks. */

import { GROUPS, PASSWORD, PEOPLE, type Person } from '../test/directory/servers/people.ts';

/** Several users at once, all in nested groups of three levels. One user many times would wait for one row. */
export function atOnce(count: number): readonly Person[] {
  const members: readonly Person[] = (GROUPS[0]?.people ?? []).map((key) => PEOPLE[key]);
  const people = members.filter(({ password, namedByCn }) => password === PASSWORD && namedByCn !== true);
  return Array.from({ length: count }, (_, i) => people[i % people.length] ?? PEOPLE.alice);
}
