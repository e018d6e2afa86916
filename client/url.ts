/** Addresses are put together as text: a URL parser would resolve what only looks like a relative path. */

export type PathParameters = Readonly<Record<string, string>>;
export type QueryParameters = Readonly<Record<string, string | number | boolean | undefined>>;

/**
 * @param text `https://ai.example.com`, or empty in a browser: the page's own origin
 * @throws TypeError, which does not repeat the text: it may hold a password
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

/** An empty segment, or one of dots, would make the address of another resource: `DELETE …/users/..`. */
function segment(name: string, value: string | undefined): string {
  if (value === undefined || value === '' || value === '.' || value === '..') {
    throw new TypeError(`The path parameter ${name} cannot be ${value === undefined ? 'left out' : `"${value}"`}.`);
  }
  return encodeURIComponent(value);
}
