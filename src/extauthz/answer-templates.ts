/** Keeps the templates of shapes that many requests have. */

import type { Route } from '../decision/model.ts';
import { makeTemplate, type Shape, type Template } from './answer-template.ts';
import type { Removals } from './own-headers.ts';

/** The length of every id that `makeId` creates. */
const ID_LENGTH = 30;
const MAX_TENANT_LENGTH = 63;
const MAX_MODEL_LENGTH = 254;
const MAX_DIGITS = 15;
const MAX_RESERVATION_LENGTH = 63;
/** The number of templates, and the bytes of one: at most 4 MB in all. */
const MAX_KEPT = 2048;
const MAX_BYTES = 2048;

export type Templates = (shape: Shape) => Template;

export function createTemplates(removals: Removals): Templates {
  const kept = new Map<Route, Map<readonly string[], Map<number, Template>>>();
  let count = 0;

  function keep(shape: Shape, key: number, template: Template): void {
    if (count >= MAX_KEPT) {
      kept.clear();
      count = 0;
    }
    count++;
    const ofRoute = kept.get(shape.route) ?? new Map<readonly string[], Map<number, Template>>();
    const ofRoles = ofRoute.get(shape.roles) ?? new Map<number, Template>();
    kept.set(shape.route, ofRoute.set(shape.roles, ofRoles.set(key, template)));
  }

  return (shape) => {
    const key = keyOf(shape);
    const known = key === undefined ? undefined : kept.get(shape.route)?.get(shape.roles)?.get(key);
    if (known !== undefined) return known;
    const template = makeTemplate(shape, removals);
    if (key !== undefined && template.bytes.length <= MAX_BYTES) keep(shape, key, template);
    return template;
  };
}

/**
 * Returns a number that is unique for a shape among those of one route and one list of roles; undefined for a shape
 * that is not kept.
 */
function keyOf(shape: Shape): number | undefined {
  const { subjectLength, userLength, tenantLength, requestIdLength, modelLength, maxTokensLength } = shape;
  if (shape.defaultModel !== undefined || shape.seen.length > 0) return undefined;
  if (subjectLength !== ID_LENGTH || requestIdLength !== ID_LENGTH) return undefined;
  if (userLength !== undefined && userLength !== ID_LENGTH) return undefined;
  const model = modelLength === undefined ? 0 : modelLength + 1;
  const digits = maxTokensLength ?? 0;
  const reservation = shape.reservationLength ?? 0;
  if (tenantLength > MAX_TENANT_LENGTH || model > MAX_MODEL_LENGTH + 1 || digits > MAX_DIGITS) return undefined;
  if (reservation > MAX_RESERVATION_LENGTH) return undefined;
  const flags =
    (shape.kind === 'user' ? 1 : 0) +
    (userLength === undefined ? 0 : 2) +
    (shape.isMessages ? 4 : 0) +
    (shape.hasToken ? 8 : 0) +
    (shape.hasAllAliases ? 16 : 0);
  return flags + 32 * (tenantLength + 64 * (model + 256 * (digits + 16 * reservation)));
}
