/** The entries of the palette. Enter runs the selected entry. */

import type { IconName } from '../../ui/icon.tsx';

export interface Entry {
  /** Unique in the palette. */
  readonly id: string;
  readonly icon: IconName;
  readonly name: string;
  /** Distinguishes it from other entries with the same name. */
  readonly detail?: string | undefined;
  readonly isMono?: boolean;
  /** At the end of the line. */
  readonly aside?: string | undefined;
  /** The keys that do the same without the palette. */
  readonly keys?: readonly string[];
  readonly go: () => void;
}

export type GroupName =
  | 'request'
  | 'places'
  | 'actions'
  | 'users'
  | 'keys'
  | 'roles'
  | 'policies'
  | 'issuers'
  | 'tenants';

export interface Group {
  readonly id: GroupName;
  readonly entries: readonly Entry[];
}

/** Reports whether a word of the name begins with the typed text; any name does with none. */
export function isMeant(name: string, typed: string): boolean {
  const wanted = typed.toLowerCase();
  const words = name.toLowerCase().split(/\s+/);
  return words.some((_, at) => words.slice(at).join(' ').startsWith(wanted));
}
