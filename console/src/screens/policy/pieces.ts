/** The pieces of a policy's sentence. */

import { summary as text } from '../../text/en/policies.ts';

/** strong: what differs from policy to policy. effect: what it does. */
export interface Piece {
  readonly text: string;
  readonly kind: 'plain' | 'strong' | 'effect';
}

const MAX_NAMED = 4;

export function plain(value: string): Piece {
  return { kind: 'plain', text: value };
}

export function strong(value: string): Piece {
  return { kind: 'strong', text: value };
}

/** Names the first few and counts the others; each name is a piece of its own. */
export function list(values: readonly string[]): readonly Piece[] {
  const unique = [...new Set(values)];
  const named = unique.length <= MAX_NAMED ? unique : unique.slice(0, MAX_NAMED - 1);
  const shown = named.length === unique.length ? named : [...named, text.more(unique.length - named.length)];
  return text.listed(shown).map(({ type, value }) => (type === 'element' ? strong(value) : plain(value)));
}
