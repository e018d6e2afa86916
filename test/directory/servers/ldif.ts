/** Entries, and LDIF (RFC 2849) for the tools that load them. */

export type Value = string | Buffer;

export interface Entry {
  readonly dn: string;
  readonly attributes: Readonly<Record<string, Value | readonly Value[]>>;
}

/** Matches a value that a line may have unencoded (SAFE-STRING); every other value is base64. */
const SAFE = /^[!-9;=-~][ -~]*$/;

export function ldif(entries: readonly Entry[]): string {
  return record(entries.map(({ dn, attributes }) => [line('dn', dn), ...lines(attributes)]));
}

/** Changes that add values to attributes. */
export function ldifAdditions(entries: readonly Entry[]): string {
  return record(
    entries.map(({ dn, attributes }) => [
      line('dn', dn),
      'changetype: modify',
      ...Object.entries(attributes).flatMap(([name, values]) => [`add: ${name}`, ...lines({ [name]: values }), '-']),
    ]),
  );
}

function record(records: readonly (readonly string[])[]): string {
  return records.map((each) => `${each.join('\n')}\n`).join('\n');
}

function lines(attributes: Entry['attributes']): string[] {
  return Object.entries(attributes).flatMap(([name, values]) => listed(values).map((value) => line(name, value)));
}

function listed(values: Value | readonly Value[]): readonly Value[] {
  return typeof values === 'string' || Buffer.isBuffer(values) ? [values] : values;
}

function line(name: string, value: Value): string {
  if (typeof value === 'string' && SAFE.test(value) && !value.endsWith(' ')) return `${name}: ${value}`;
  return `${name}:: ${Buffer.from(value).toString('base64')}`;
}

/** A value in a DN as RFC 4514, section 2.4 has it. */
export function dnValue(text: string): string {
  return text.replace(/[\\",+;<>=]/g, (character) => `\\${character}`);
}

/** As ldapts takes them; an attribute without values is none. */
export function writable(attributes: Entry['attributes']): Record<string, string[]> {
  const filled = Object.entries(attributes).map(([name, values]) => [name, listed(values).map(String)] as const);
  return Object.fromEntries(filled.filter(([, values]) => values.length > 0));
}
