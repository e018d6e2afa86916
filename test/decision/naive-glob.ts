/** Globs by a table: the obvious twin of the matcher that also ends for long names and many stars. */

/** Whether the glob matches: which beginnings of the name each beginning of the glob matches, one after the other. */
export function tableMatches(text: string, name: string): boolean {
  let reached = new Array<boolean>(name.length + 1).fill(false);
  reached[0] = true;
  for (const one of text) {
    const next = new Array<boolean>(name.length + 1).fill(false);
    for (let at = 0; at <= name.length; at++) {
      if (one === '*') next[at] = (reached[at] ?? false) || (at > 0 && (next[at - 1] ?? false));
      else next[at] = at > 0 && (reached[at - 1] ?? false) && name[at - 1] === one;
    }
    reached = next;
  }
  return reached[name.length] ?? false;
}
