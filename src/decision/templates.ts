/**
 * Path templates: `/v1/models/{model+}`. `{x}` is one segment, `{x+}` one or more, `**` zero or more and only at the
 * end.
 */

export type Part =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'one'; readonly name: string }
  | { readonly kind: 'more'; readonly name: string }
  | { readonly kind: 'rest' };

type TemplateResult =
  | { readonly kind: 'template'; readonly text: string; readonly parts: readonly Part[] }
  | { readonly kind: 'error'; readonly message: string };

/** Characters of a segment that need no encoding and that all readers understand alike (RFC 3986, section 3.3). */
const LITERAL = /^[A-Za-z0-9._~!$&'()+,=:@-]+$/;
const VARIABLE = /^\{([a-z][a-z0-9_]*)(\+?)\}$/;

function parsePart(text: string): Part | undefined {
  if (text === '**') return { kind: 'rest' };
  const variable = VARIABLE.exec(text);
  if (variable !== null) return { kind: variable[2] === '+' ? 'more' : 'one', name: variable[1] ?? '' };
  return LITERAL.test(text) && text !== '.' && text !== '..' ? { kind: 'literal', text } : undefined;
}

/** Parses a template. One trailing slash is dropped, like that of a request's path. */
export function parseTemplate(text: string): TemplateResult {
  const error = (message: string): TemplateResult => ({
    kind: 'error',
    message: `path ${JSON.stringify(text)}: ${message}`,
  });
  if (!text.startsWith('/')) return error('must start with a slash');
  const path = text.length > 1 && text.endsWith('/') ? text.slice(0, -1) : text;
  const pieces = path === '/' ? [] : path.slice(1).split('/');
  const parts: Part[] = [];
  const names = new Set<string>();
  let wide = 0;
  for (const [index, piece] of pieces.entries()) {
    const part = parsePart(piece);
    if (part === undefined) return error(`segment ${JSON.stringify(piece)} must be a literal, {name}, {name+} or **`);
    if (part.kind === 'rest' && index < pieces.length - 1) return error('** must be the last segment');
    if (part.kind === 'rest' || part.kind === 'more') wide++;
    if (part.kind === 'one' || part.kind === 'more') {
      if (names.has(part.name)) return error(`{${part.name}} appears twice`);
      names.add(part.name);
    }
    parts.push(part);
  }
  return wide > 1
    ? error('a path must not contain both {name+} and **, or either of them twice')
    : { kind: 'template', text: path, parts };
}

/** Returns the text of a template's variable in a matching path; undefined if the template has no such variable. */
export function captured(parts: readonly Part[], name: string, segments: readonly string[]): string | undefined {
  const at = parts.findIndex((part) => (part.kind === 'one' || part.kind === 'more') && part.name === name);
  if (at < 0) return undefined;
  // Parts after the one wide part are counted from the end.
  const wide = parts.findIndex((part) => part.kind === 'more' || part.kind === 'rest');
  const shift = segments.length - parts.length;
  if (at === wide) return segments.slice(at, at + shift + 1).join('/');
  return segments[wide >= 0 && at > wide ? at + shift : at];
}
