/**
 * Characters that let two different names look the same: controls of the writing direction (Unicode Standard Annex 9),
 * and characters that have no width. A joiner (U+200C, U+200D) is part of ordinary text between letters of scripts that
 * join, and in emoji.
 */

/**
 * Never part of a name: soft hyphen, direction controls, line and paragraph separators, zero-width characters,
 * annotations, and tags.
 */
const NEVER =
  '[\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}]';
const JOINER = '[\\u200c\\u200d]';
/** A letter or mark of a script that may join, or part of an emoji. */
const JOINABLE =
  '(?:(?![\\p{sc=Latin}\\p{sc=Greek}\\p{sc=Cyrillic}\\p{sc=Inherited}])[\\p{L}\\p{M}]|\\ufe0f|\\p{Emoji_Modifier}|\\p{Extended_Pictographic})';
const HIDDEN = `(?:${NEVER}|(?<!${JOINABLE})${JOINER}|${JOINER}(?!${JOINABLE}))`;

const EACH_HIDDEN = new RegExp(HIDDEN, 'gu');

/** A pattern (ECMA-262, flag `u`) that matches exactly the texts without hidden characters. */
export const VISIBLE_TEXT = `^(?![^]*${HIDDEN})`;

/** A pattern like VISIBLE_TEXT that matches no blank text. */
export const VISIBLE_TITLE = `${VISIBLE_TEXT}[^]*\\S`;

/** Returns the hidden characters of a text as code points such as `U+202E`, each once, in the order of the text. */
export function hiddenIn(text: string): readonly string[] {
  const found = text.match(EACH_HIDDEN) ?? [];
  return [...new Set(found)].map(
    (each) => `U+${(each.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`,
  );
}

export function withoutHidden(text: string): string {
  return text.replaceAll(EACH_HIDDEN, '');
}
