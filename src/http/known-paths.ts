/** Which methods a path is known under, to tell a wrong method from a wrong path. */

import type { Endpoint } from './endpoint.ts';

/** Methods for the `Allow` header; empty when no endpoint has this path. HEAD goes with GET. */
export function allowedMethods(
  endpoints: readonly Pick<Endpoint, 'method' | 'path'>[],
  url: string,
): readonly string[] {
  const path = url.split('?', 1)[0] ?? '';
  const segments = segmentsOf(path);
  const methods = endpoints
    .filter((endpoint) => matches(segmentsOf(endpoint.path), segments))
    .map((endpoint) => endpoint.method);
  return methods.includes('GET') ? [...methods, 'HEAD'] : methods;
}

function segmentsOf(path: string): readonly string[] {
  return path.replace(/(?<=.)\/$/, '').split('/');
}

/** `*` at the end of a template matches at least one segment. */
function matches(template: readonly string[], segments: readonly string[]): boolean {
  if (template.at(-1) === '*') {
    const fixed = template.slice(0, -1);
    return segments.length > fixed.length && matches(fixed, segments.slice(0, fixed.length));
  }
  return (
    template.length === segments.length &&
    template.every((part, i) => (part.startsWith(':') ? segments[i] !== '' : part === segments[i]))
  );
}
