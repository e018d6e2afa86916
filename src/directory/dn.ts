/** Distinguished names as text (RFC 4514): escaping, parsing, and the form in which they are compared. */

interface NamePart {
  /** In lower case; the short name if there is one. */
  readonly type: string;
  readonly value: string;
}

/** From the entry upwards. A level has more than one part if several attributes name it. */
type Dn = readonly (readonly NamePart[])[];

const TYPE = /^(?:[A-Za-z][A-Za-z0-9-]*|(?:[oO][iI][dD]\.)?\d+(?:\.\d+)*)$/;
const HEX_PAIR = /^[0-9a-fA-F]{2}$/;
/** RFC 4514, section 2.4: a value contains these only after a backslash. */
const SPECIAL = '"+,;<>\\';
const PLAIN = /^[A-Za-z0-9._-]+$/;
const ASCII = /^\p{ASCII}*$/u;
/** Characters of a value that need no escape. */
const RUN = /[^"+,;<>\\\0]+/y;
const ESCAPABLE = `${SPECIAL} #=`;

/** Other names of the attributes in DNs (RFC 4519). */
const SHORT_NAMES: ReadonlyMap<string, string> = new Map([
  ['2.5.4.3', 'cn'],
  ['commonname', 'cn'],
  ['2.5.4.4', 'sn'],
  ['surname', 'sn'],
  ['2.5.4.6', 'c'],
  ['countryname', 'c'],
  ['2.5.4.7', 'l'],
  ['localityname', 'l'],
  ['2.5.4.8', 'st'],
  ['stateorprovincename', 'st'],
  ['2.5.4.9', 'street'],
  ['streetaddress', 'street'],
  ['2.5.4.10', 'o'],
  ['organizationname', 'o'],
  ['2.5.4.11', 'ou'],
  ['organizationalunitname', 'ou'],
  ['0.9.2342.19200300.100.1.1', 'uid'],
  ['userid', 'uid'],
  ['0.9.2342.19200300.100.1.25', 'dc'],
  ['domaincomponent', 'dc'],
]);

/** Escapes a value for a DN, so that any text stays one value (RFC 4514, section 2.4). */
export function escapeDnValue(value: string): string {
  if (PLAIN.test(value)) return value;
  const last = value.length - 1;
  return [...value.matchAll(/[\s\S]/g)]
    .map(({ 0: char, index }) => {
      const code = char.charCodeAt(0);
      if (code < 0x20 || code === 0x7f) return `\\${code.toString(16).padStart(2, '0')}`;
      const atEdge = (char === ' ' && (index === 0 || index === last)) || (char === '#' && index === 0);
      return atEdge || char === '=' || SPECIAL.includes(char) ? `\\${char}` : char;
    })
    .join('');
}

/** Returns undefined for text that is not a DN. The empty text is the empty DN: the root. */
export function parseDn(text: string): Dn | undefined {
  if (text.trim() === '') return [];
  const reader = new Reader(text);
  const levels: NamePart[][] = [[]];
  for (;;) {
    const part = reader.part();
    if (part === undefined) return undefined;
    levels.at(-1)?.push(part);
    const separator = reader.take();
    if (separator === undefined) return levels;
    if (separator === ',') levels.push([]);
  }
}

/**
 * Returns the form in which all DNs of one entry are the same text: short type names, values in Unicode's compatible
 * form, in lower case and without redundant spaces (caseIgnoreMatch of RFC 4517, as directories compare names), uniform
 * escapes, and sorted parts of a level. Returns undefined for text that is not a DN.
 */
export function normaliseDn(text: string): string | undefined {
  return parseDn(text)
    ?.map((level) =>
      level
        .map(({ type, value }) => `${type}=${escapeDnValue(foldName(value))}`)
        .toSorted()
        .join('+'),
    )
    .join(',');
}

/**
 * Returns the form in which directories compare names of people and groups: case and the number of spaces do not
 * matter.
 */
export function foldName(value: string): string {
  // ASCII characters have no other compatible form.
  const folded = ASCII.test(value) ? value.toLowerCase() : value.normalize('NFKC').toLowerCase().normalize('NFKC');
  return folded.replace(/\s+/g, ' ').trim();
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Reads the next character; undefined at the end. */
  take(): string | undefined {
    const char = this.#text[this.#at];
    this.#at += 1;
    return char;
  }

  /** Reads `type=value`, up to the separator. */
  part(): NamePart | undefined {
    const equals = this.#text.indexOf('=', this.#at);
    const type = this.#text.slice(this.#at, Math.max(equals, this.#at)).trim();
    if (equals < 0 || !TYPE.test(type)) return undefined;
    this.#at = equals + 1;
    const value = this.#value();
    const plain = type.toLowerCase().replace(/^oid\./, '');
    return value === undefined ? undefined : { type: SHORT_NAMES.get(plain) ?? plain, value };
  }

  #value(): string | undefined {
    while (this.#text[this.#at] === ' ') this.#at += 1;
    if (this.#text[this.#at] === '#') return this.#encoded();
    const bytes: Buffer[] = [];
    for (;;) {
      const char = this.#text[this.#at];
      if (char === undefined || char === ',' || char === '+') break;
      const run = char === '\\' ? undefined : this.#run();
      // Nearly always that is the whole value.
      if (run !== undefined && bytes.length === 0 && this.#ends()) return run;
      const piece = char === '\\' ? this.#escaped() : run === undefined ? undefined : Buffer.from(run);
      if (piece === undefined) return undefined;
      bytes.push(piece);
    }
    return utf8(Buffer.concat(bytes));
  }

  /** Reads characters that need no escape. Unescaped spaces at the end do not belong to the value. */
  #run(): string | undefined {
    RUN.lastIndex = this.#at;
    const run = RUN.exec(this.#text)?.[0];
    if (run?.isWellFormed() !== true) return undefined;
    this.#at += run.length;
    return this.#ends() ? run.replace(/ +$/, '') : run;
  }

  #ends(): boolean {
    const char = this.#text[this.#at];
    return char === undefined || char === ',' || char === '+';
  }

  /** Reads one byte: a backslash and a special character, or two hexadecimal digits. */
  #escaped(): Buffer | undefined {
    const pair = this.#text.slice(this.#at + 1, this.#at + 3);
    const char = pair[0] ?? '';
    const isHex = HEX_PAIR.test(pair);
    if (!isHex && (char === '' || !ESCAPABLE.includes(char))) return undefined;
    this.#at += isHex ? 3 : 2;
    return isHex ? Buffer.from(pair, 'hex') : Buffer.from(char);
  }

  /** Reads `#` and the value's BER in hexadecimal. It decodes a string, and returns any other value as text. */
  #encoded(): string | undefined {
    const digits = /^#((?:[0-9a-fA-F]{2})+) *(?=[,+]|$)/.exec(this.#text.slice(this.#at));
    if (digits?.[1] === undefined) return undefined;
    this.#at += digits[0].length;
    const ber = Buffer.from(digits[1], 'hex');
    const isString = [0x04, 0x0c, 0x13, 0x16].includes(ber[0] ?? 0) && ber[1] === ber.length - 2 && ber.length < 130;
    return (isString ? utf8(ber.subarray(2)) : undefined) ?? `#${digits[1].toLowerCase()}`;
  }
}

const DECODER = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function utf8(bytes: Buffer): string | undefined {
  try {
    return DECODER.decode(bytes);
  } catch {
    return undefined;
  }
}
