/** Ways into rendered objects. */

import type { Manifest } from '../../scripts/lib/tools/manifests.ts';

/** The member that the steps lead to; undefined when there is none. */
export function at(value: unknown, ...steps: readonly (string | number)[]): unknown {
  let inner = value;
  for (const step of steps) {
    if (typeof inner !== 'object' || inner === null) return undefined;
    inner = new Map<string, unknown>(Object.entries(inner)).get(String(step));
  }
  return inner;
}

export function textAt(value: unknown, ...steps: readonly (string | number)[]): string {
  const text = at(value, ...steps);
  return typeof text === 'string' ? text : '';
}

export function listAt(value: unknown, ...steps: readonly (string | number)[]): readonly unknown[] {
  const list = at(value, ...steps);
  return Array.isArray(list) ? list : [];
}

/** The spec of the pod that an object makes, or is. */
export function podSpecOf(manifest: Manifest): unknown {
  switch (manifest.kind) {
    case 'Pod':
      return at(manifest, 'spec');
    case 'Deployment':
    case 'Job':
      return at(manifest, 'spec', 'template', 'spec');
    default:
      return undefined;
  }
}

export function containersOf(pod: unknown): readonly unknown[] {
  return [...listAt(pod, 'initContainers'), ...listAt(pod, 'containers')];
}

/** The one object of the kind and name; throws when there is none or several. */
export function only(manifests: readonly Manifest[], kind: string, name?: string): Manifest {
  const [first, ...others] = manifests.filter(
    (one) => one.kind === kind && (name === undefined || one.metadata.name === name),
  );
  if (first === undefined || others.length > 0)
    throw new Error(`${others.length + (first === undefined ? 0 : 1)} objects ${kind} ${name}`);
  return first;
}
