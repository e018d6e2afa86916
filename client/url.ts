/** Builds addresses as text, because a URL parser would resolve `..` in the name of a resource. */

export type PathParameters = Readonly<Record<string, string>>;
export type QueryParameters = Readonly<Record<string, string | number | boolean | undefined>>;

/**
 * @param text `https://ai.example.com`; empty, in a browser: the origin of the page
 * @throws TypeError. Its message does not contain the text, which may have a password
 */
export function readBaseUrl(text: string): string {
  const base = text.replace(/\/+$/, '');
  if (base !== '' && !/^https?:\/\/[^/?#@\s]+(?:\/[^?#@\s]*)?$/i.test(base)) {
    throw new TypeError('baseUrl has to be like https://ai.example.com, without query or credentials.');
  }
  return base;
}

/** @param template `/v1/iam/users/{id}` */
export function requestUrl(
  base: string,
  template: string,
  path: PathParameters = {},
  query: QueryParameters = {},
): string {
  const target = template.replace(/\{([^}]+)\}/g, (_all, name: string) => segment(name, path[name]));
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [`${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`],
  );
  return `${base}${target}${pairs.length === 0 ? '' : `?${pairs.join('&')}`}`;
}

/** An empty segment, or one of dots, would be the address of another resource: `DELETE …/users/..`. */
function segment(name: string, value: string | undefined): string {
  if (value === undefined || value === '' || value === '.' || value === '..') {
    throw new TypeError(`The path parameter ${name} cannot be ${value === undefined ? 'left out' : `"${value}"`}.`);
  }
  return encodeURIComponent(value);
}
