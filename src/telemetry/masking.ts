/**
 * Masks secrets in logs twice: by the name of the member that holds them, and by the form of the text of the line. The
 * second also masks secrets in messages, stacks and URLs.
 */

const MASKED = '***';
/** The log has no members below this depth. */
const MAX_DEPTH = 10;
/** Names in snake case. `key` means an API key. `key_id` and `max_tokens` are no secrets. */
const SECRET_NAME = /(^|_)(authorization|password|passwd|token|secret|cookie|credential|key|hash|digest)$/;

const MASKS: readonly ((text: string) => string)[] = [
  // API keys, refresh tokens and one-time tokens. The eight characters of a key that lists show are shorter.
  (text) => text.replace(/(?:\b|(?<=%[0-9A-Fa-f]{2}))(psk|prt|pst)_[0-9A-Za-z_%-]{8,}/g, `$1_${MASKED}`),
  // JSON Web Tokens. Characters that may begin one and do not are matched as well, so that none is read twice. With
  // white space in its header, a token begins like some words, so its second part must be an object as well.
  (text) =>
    text.replace(
      /(?:\b|(?<=%[0-9A-Fa-f]{2}))(ey[A-DJ]|ew[k-r0-3])(?:([0-9A-Za-z_-]{8,}(?:\.[0-9A-Za-z_-]*){1,2})|[0-9A-Za-z_-]*)/g,
      (match, start: string, rest?: string) =>
        rest === undefined || (start !== 'eyJ' && !/\.e[wy]/.test(rest)) ? match : `${start}${MASKED}`,
    ),
  // Passwords in URLs.
  (text) => text.replace(/\b([a-z][a-z0-9+.-]{0,20}:\/\/[^\s:/@"\\]{0,256}:)[^\s@/"\\]{1,256}@/gi, `$1${MASKED}@`),
  // Password hashes.
  (text) => text.replace(/\$argon2[^\s"\\]+/g, `$argon2${MASKED}`),
];

/** Returns one line of JSON without secrets, with its line end. */
export function maskLine(line: string): string {
  const members: unknown = JSON.parse(line);
  const text = `${JSON.stringify(maskValue(members, 0))}\n`;
  return maskText(text);
}

/**
 * Matches every text with a secret of the forms above, and few others, so most texts need one search instead of four.
 */
const HINT = /p(?:sk|rt|st)_|ey[A-DJ]|ew[k-r0-3]|:\/\/|\$argon2/;

/** A percent-encoded unreserved character, encoded any number of times (RFC 3986, sections 2.3 and 6.2.2.2). */
const NEEDLESS_ESCAPE = /%(?:25)*(2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])/gi;

/**
 * A text is masked with this many characters beyond its bound, so that a secret at the end is recognized before the cut.
 */
export const MASKING_ROOM = 1024;

/**
 * Replaces every text that has the form of a secret. If a secret shows only after decoding characters that need no
 * percent-encoding, all of them are decoded. The path of a refused request may have such a secret.
 */
export function maskText(text: string): string {
  if (text.includes('%')) {
    const decoded = text.replace(NEEDLESS_ESCAPE, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
    const masked = maskForms(decoded);
    if (masked !== decoded) return masked;
  }
  return maskForms(text);
}

function maskForms(text: string): string {
  if (!HINT.test(text)) return text;
  return MASKS.reduce((masked, mask) => mask(masked), text);
}

function maskValue(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  if (depth > MAX_DEPTH) {
    return '…';
  }
  if (Array.isArray(value)) {
    return value.map((item: unknown) => maskValue(item, depth + 1));
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, isSecretName(name) ? MASKED : maskValue(member, depth + 1)]),
  );
}

function isSecretName(name: string): boolean {
  const snake = name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').replace(/-/g, '_');
  return SECRET_NAME.test(snake.toLowerCase());
}
