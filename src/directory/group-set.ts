/** The groups found so far: each once, by its normalised DN, however often and in whichever spelling it comes. */

import { Fault } from '../domain/errors.ts';
import { normaliseDn } from './dn.ts';

/** More groups than this are a mistake in a filter, or a directory that is not to be walked at each login. */
const MAX_GROUPS = 10_000;

export class GroupSet {
  /** Normalised DN -> as the server wrote it, which is how the server is asked about it. */
  readonly #dns = new Map<string, string>();

  /** Gives those that are new, as they were written. What is no DN is no group. @throws Fault when there are too many */
  add(dns: Iterable<string>): readonly string[] {
    const added: string[] = [];
    for (const dn of dns) {
      const normal = normaliseDn(dn);
      if (normal === undefined || normal === '' || this.#dns.has(normal)) continue;
      if (this.#dns.size >= MAX_GROUPS) throw new Fault(`a person is in more than ${MAX_GROUPS} groups`);
      this.#dns.set(normal, dn);
      added.push(dn);
    }
    return added;
  }

  /** Normalised and sorted. */
  list(): readonly string[] {
    return [...this.#dns.keys()].toSorted((a, b) => (a < b ? -1 : 1));
  }
}
