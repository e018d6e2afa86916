/** Chat bodies of the same size and different content, for what it costs to read them. */

/** A base64 image in a content part, as the OpenAI SDKs send it. */
export function withImage(bytes: number): string {
  return chatOf([
    { type: 'image_url', image_url: { url: `data:image/png;base64,${'iVBORw0KGgo'.repeat(bytes / 11)}` } },
  ]);
}

/** Lines, so that there is an escape in each. */
export function withText(bytes: number): string {
  return chatOf(filled('The quick brown fox jumps over the lazy dog, and rests by the river.\n', bytes));
}

/** Repeats a piece until its JSON has about `bytes` bytes. */
function filled(piece: string, bytes: number): string {
  return piece.repeat(bytes / (Buffer.byteLength(JSON.stringify(piece)) - 2));
}

function chatOf(content: unknown, more: object = {}): string {
  return JSON.stringify({ model: 'llama-3-8b', max_tokens: 256, messages: [{ role: 'user', content }], ...more });
}

/** A list of as many bytes as `bytes`, spelt as given. */
function withList(items: readonly string[], bytes: number): string {
  const joined = `${items.join(',')},`;
  const list = joined.repeat(bytes / joined.length).slice(0, -1);
  return `${chatOf('').slice(0, -1)},"list":[${list}]}`;
}

/** Numbers between 0 and 1 that have no pattern, always the same. */
function scattered(count: number): readonly number[] {
  let state = 1;
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state / 0x80000000;
  });
}

const WORDS = scattered(4096);

/** Bodies that hold what costs most to read, by name. The first is plain text, with which the others are compared. */
export const SHAPES: readonly (readonly [name: string, of: (bytes: number) => string])[] = [
  ['plain text', (bytes) => chatOf(filled('The quick brown fox jumps over the lazy dog. ', bytes))],
  ['lines of text', withText],
  ['line breaks only', (bytes) => chatOf(filled('\n', bytes))],
  [
    'quotes in short words',
    (bytes) => chatOf(filled(WORDS.map((each) => `${'say'.slice(0, each * 4)}"`).join(''), bytes)),
  ],
  ['escaped code units', (bytes) => `${chatOf('').slice(0, -1)},"text":"${'\\u00e9'.repeat(bytes / 6)}"}`],
  ['text that is not ASCII', (bytes) => chatOf(filled('Съешь ещё этих мягких французских булок. ', bytes))],
  [
    'token ids',
    (bytes) =>
      withList(
        WORDS.map((each) => String(Math.floor(each * each * 128_000))),
        bytes,
      ),
  ],
  [
    'fractions',
    (bytes) =>
      withList(
        WORDS.map((each) => String((each - 0.5) * 2)),
        bytes,
      ),
  ],
  [
    'small objects',
    (bytes) =>
      withList(
        WORDS.map((each) => (each < 0.5 ? '{"a":1}' : '{"b":"c"}')),
        bytes,
      ),
  ],
];
