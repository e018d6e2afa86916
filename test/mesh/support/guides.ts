/** The manifests of the guides, as a reader would copy them. */

import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';

export const GUIDES = ['istio', 'istio-ambient', 'envoy-gateway', 'ai-gateway', 'kgateway', 'agentgateway'] as const;
export type Guide = (typeof GUIDES)[number];

/** The guide that a reader follows first. */
export const BASES: Partial<Readonly<Record<Guide, Guide>>> = {
  'istio-ambient': 'istio',
  'ai-gateway': 'envoy-gateway',
};

/** A YAML mapping. */
export type Mapping = Readonly<Record<string, unknown>>;

export function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the text of a page in `docs/`. */
export function pageText(page: string): string {
  return readFileSync(new URL(`../../../docs/${page}.md`, import.meta.url), 'utf8');
}

/** Returns every YAML document in the code blocks of a guide, in order. Throws if one is no mapping, or is not YAML. */
export function documentsOf(guide: Guide): readonly Mapping[] {
  const blocks = [...pageText(guide).matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, text = '']) => text);
  return blocks.flatMap((block) =>
    parseAllDocuments(block).map((document) => {
      const [problem] = document.errors;
      if (problem !== undefined) throw problem;
      const value: unknown = document.toJS();
      if (!isMapping(value)) throw new Error(`${guide}.md has a YAML document that is no mapping`);
      return value;
    }),
  );
}

/** Returns the manifests of a guide: the documents that Kubernetes takes. */
export function manifestsOf(guide: Guide): readonly Mapping[] {
  return documentsOf(guide).filter((document) => 'apiVersion' in document);
}

/** Returns the only manifest of a kind, by its name if there are several. */
export function manifest(guide: Guide, kind: string, name?: string): Mapping {
  const found = manifestsOf(guide).filter(
    (one) => one['kind'] === kind && (name === undefined || at(one, 'metadata', 'name') === name),
  );
  const [one] = found;
  if (one === undefined || found.length > 1)
    throw new Error(`${guide}.md has ${found.length} manifests of the kind ${kind}`);
  return one;
}

/** Returns the value at a path of members and positions; undefined where the path leads nowhere. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((inner, step) => {
    if (Array.isArray(inner) && typeof step === 'number') return inner[step];
    return isMapping(inner) ? inner[step] : undefined;
  }, value);
}

/** Returns the list at a path; empty if there is none. */
export function listAt(value: unknown, ...path: readonly (string | number)[]): readonly unknown[] {
  const list = at(value, ...path);
  return Array.isArray(list) ? list : [];
}
