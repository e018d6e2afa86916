/** Checks the meaning of a setup file that has errors of form, so that one run reports both. */

import { ownMember, pointerSteps, pointerTo } from '../domain/json.ts';
import type { FieldError } from '../domain/problem-details.ts';
import { readSetup, type SetupError } from '../iam/setup/read.ts';
import { checkForm } from './apply-schema.ts';

/** Each round removes the values that the last round found. A removed value may leave its parent incomplete. */
const MAX_ROUNDS = 8;

/** Members whose meaning depends on each other: without one of them, the other would look wrong. */
const TOGETHER: ReadonlyMap<string, string> = new Map([
  ['applies_to', 'attached_roles'],
  ['attached_roles', 'applies_to'],
]);

/** Original indices of the elements of an array that lost some. */
type Origins = WeakMap<readonly unknown[], readonly number[]>;

/**
 * Returns the errors of meaning in everything that has no error of form. The paths lead into `value`.
 * @param formErrors at least one
 */
export function meaningErrors(value: unknown, formErrors: readonly FieldError[]): readonly SetupError[] {
  const origins: Origins = new WeakMap();
  let rest = value;
  let errors = formErrors;
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const removed = new Set(errors.flatMap(({ path }) => removedFor(rest, path)));
    if (removed.has('')) return [];
    rest = without(rest, removed, '', origins);
    const checked = checkForm(rest, true);
    if (checked.kind === 'valid') {
      const read = readSetup(checked.value);
      if (read.kind === 'setup') return [];
      return read.errors.map(({ path, message, also }) => ({
        path: originalPath(rest, path, origins),
        message,
        ...(also === undefined ? {} : { also: originalPath(rest, also, origins) }),
      }));
    }
    errors = checked.errors;
  }
  return [];
}

/** Returns the paths of the values to remove: the wrong one, or the parent of one that is missing. */
function removedFor(value: unknown, path: string): readonly string[] {
  const steps = pointerSteps(path);
  if (steps.reduce(ownMember, value) === undefined) return [path.slice(0, Math.max(path.lastIndexOf('/'), 0))];
  const index = steps.findIndex((step) => TOGETHER.has(step));
  if (index < 0) return [path];
  const parent = path
    .split('/')
    .slice(0, index + 1)
    .join('/');
  return [path, `${parent}/${TOGETHER.get(steps[index] ?? '') ?? ''}`];
}

function without(value: unknown, removed: ReadonlySet<string>, at: string, origins: Origins): unknown {
  if (Array.isArray(value)) {
    const before = origins.get(value);
    const kept = value.map((_, i) => i).filter((i) => !removed.has(`${at}/${i}`));
    const result = kept.map((i): unknown => without(value[i], removed, `${at}/${i}`, origins));
    origins.set(
      result,
      kept.map((i) => before?.[i] ?? i),
    );
    return result;
  }
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).flatMap(([name, member]): [string, unknown][] => {
    const path = at + pointerTo(name);
    return removed.has(path) ? [] : [[name, without(member, removed, path, origins)]];
  });
  return Object.fromEntries(members);
}

function originalPath(value: unknown, path: string, origins: Origins): string {
  let at = value;
  const steps = pointerSteps(path).map((step) => {
    const original = Array.isArray(at) ? String(origins.get(at)?.[Number(step)] ?? step) : step;
    at = ownMember(at, step);
    return pointerTo(original);
  });
  return steps.join('');
}
