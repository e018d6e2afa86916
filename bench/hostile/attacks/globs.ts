/**
 * Globs and names that take long to compare: many stars, and each piece is found until the last one, which is not
 * there.
 */

export interface GlobForm {
  readonly entries: number;
  readonly stars: number;
  readonly length: number;
}

/** From the most that was ever accepted to the least. */
export const GLOB_FORMS: readonly [GlobForm, ...GlobForm[]] = [
  { entries: 1000, stars: 254, length: 512 },
  { entries: 200, stars: 8, length: 256 },
  { entries: 100, stars: 4, length: 128 },
];

/**
 * `*a*a…*z17*`, in this form. @param prefix before the glob, such as `collections/`; it counts as part of the length
 */
export function hostileGlobs({ entries, stars, length }: GlobForm, prefix = ''): string[] {
  return Array.from({ length: entries }, (_, i) => {
    const tail = `z${i}*`;
    const room = length - prefix.length - tail.length;
    const pieces = Math.min(stars - 1, Math.floor(room / 2));
    // Few stars: longer pieces fill the length.
    const piece = `*${'a'.repeat(Math.max(1, Math.floor(room / pieces) - 1))}`;
    return `${prefix}${piece.repeat(pieces)}${tail}`.replaceAll('**', '*');
  });
}

export interface NameForm {
  readonly names: number;
  readonly length: number;
}

export const NAME_FORMS: readonly [NameForm, ...NameForm[]] = [
  { names: 1000, length: 1000 },
  { names: 64, length: 512 },
  { names: 32, length: 256 },
];

/** Distinct names of letters that the globs' pieces match. */
export function hostileNames({ names, length }: NameForm): string[] {
  return Array.from({ length: names }, (_, i) => `${'a'.repeat(length - 4)}${String(i).padStart(4, 'b')}`);
}
