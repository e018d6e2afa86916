/**
 * The phrases that this project's English avoids, and where prose has them. Prose is read by people who have never seen
 * the code, so its sentences name their subject, their condition and their time.
 */

import type { SourceFile } from './import-rules.ts';

interface Phrase {
  readonly pattern: RegExp;
  /** The words to write instead. */
  readonly advice: string;
}

export interface Finding {
  readonly file: string;
  readonly line: number;
  readonly text: string;
  readonly advice: string;
}

const SUBJECT = 'name the subject: the server, the caller, the client, the owner';
const BEGINS = String.raw`(?:^|[.:;]\s+)`;

const PHRASES: readonly Phrase[] = [
  { pattern: /\b(?:who|what)ever\b/gi, advice: SUBJECT },
  { pattern: /\b(?:somebody|nobody|anybody|someone|everybody|no one)\b/gi, advice: SUBJECT },
  { pattern: /\b(?:one's|oneself|theirs|hers)\b/gi, advice: SUBJECT },
  {
    pattern:
      /(?<!people |person |administrator |administrators |users? )\bwho (?:asks?|has|have|is|are|may|proves?|holds?|waits?|comes?)\b/gi,
    advice: SUBJECT,
  },
  { pattern: new RegExp(`${BEGINS}What\\b`, 'g'), advice: 'do not begin a sentence with What: name the thing' },
  {
    pattern: new RegExp(`${BEGINS}Of (?:a|an|the|each|every|its|one|what|those|which|[a-z]+s)\\b`, 'g'),
    advice: 'put the noun first',
  },
  {
    pattern: /\b(?:is|are|was|were|be|being) (?:told|asked|heard|said)\b/gi,
    advice: 'use an active verb with the component as its subject',
  },
  { pattern: /\b(?:tells?|telling|told)\b/gi, advice: 'reports, sends, distinguishes' },
  { pattern: /\bunless (?:told|given|said)\b/gi, advice: 'default: X' },
  { pattern: /\bas far as\b/gi, advice: 'write the condition with if' },
  {
    pattern: new RegExp(`(?:${BEGINS}|, )[Ss]hould (?:it|the|a|an|one|its|that|they)\\b`, 'g'),
    advice: 'write the condition with if',
  },
  { pattern: /\b(?:hangs? on|stands? (?:by|for)|goes? by)\b/gi, advice: 'depends on, represents, applies to' },
  {
    pattern: /\b(?:none but|all but|but for|not any more|nothing but|and its kin)\b/gi,
    advice: 'only, except, no longer',
  },
  {
    pattern: /\b(?:meanwhile|by then|from then on|once more|anew)\b/gi,
    advice: 'name the event: after the commit, while the statement runs',
  },
  {
    pattern: /\b(?:so many|so much|so often|so long|a little|next to nothing|by and large)\b/gi,
    advice: 'give the number and its unit',
  },
  {
    pattern: /\b(?:at hand|in hand|the door|doors|the room|rooms|crew|shelf|goes on|going on)\b/gi,
    advice: 'use the standard term',
  },
  { pattern: /\b(?:turn(?:s|ed)? away|lets? in|lets? through)\b/gi, advice: 'rejects, admits' },
  {
    pattern: /\b(?:look-ups?|time-outs?|e-mails?|user names?|set-ups?)\b/gi,
    advice: 'lookup, timeout, email, username, setup',
  },
];

/**
 * Returns the phrases in the comments of a source file, or in the whole of a Markdown file, in the order of their
 * lines.
 */
export function findPhrases({ path, text }: SourceFile): Finding[] {
  const blocks = path.endsWith('.md') ? [{ text, start: 0 }] : commentsOf(text);
  return blocks
    .flatMap((block) => PHRASES.flatMap((phrase) => matchesIn(block, phrase, text)))
    .map((found) => ({ file: path, ...found }))
    .sort((left, right) => left.line - right.line);
}

interface Block {
  readonly text: string;
  /** The offset in the file. */
  readonly start: number;
}

function matchesIn(block: Block, { pattern, advice }: Phrase, file: string) {
  return [...block.text.matchAll(pattern)].map((match) => ({
    line: file.slice(0, block.start + match.index + match[0].search(/[^\s.:;,]/)).split('\n').length,
    text: match[0].replace(/^[.:;,]?\s+/, '').replace(/\s+/g, ' '),
    advice,
  }));
}

const TOKEN = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[\s\S]|[^`\\])*`/g;

/** The comments, with their marks and their quoted code blanked: offsets stay, and the first word begins the text. */
function commentsOf(text: string): Block[] {
  return [...text.matchAll(TOKEN)].flatMap((match) => {
    if (!/^\/[/*]/.test(match[0])) return [];
    const prose = match[0]
      .replace(/`[^`]*`/g, (code) => code.replace(/\S/g, '_'))
      .replace(/^\/\*\*?|\*\/$|^\/\/|^[ \t]*\* ?(?:@\w+(?: \w+)?)?/gm, (mark) => ' '.repeat(mark.length));
    const begins = prose.search(/\S/);
    return begins < 0 ? [] : [{ text: prose.slice(begins), start: match.index + begins }];
  });
}
