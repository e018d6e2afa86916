/** Grants: the permissions of one role or one key, with the resources that they reach. Grants never add up. */

import type { ResourceConstraints } from '../domain/records.ts';
import { compileNames, type NameSet, namesMatch } from './globs.ts';
import type { RuleWork } from './limits.ts';
import type { Permission, Resource } from './model.ts';
import { compilePatterns, coversAny, type PatternSet } from './permissions.ts';

export interface Grant {
  /** As written: what no-escalation compares and explanations show. */
  readonly patterns: readonly string[];
  readonly constraints: ResourceConstraints;
  readonly permissions: PatternSet;
  /** Undefined = any. */
  readonly models: NameSet | undefined;
  readonly collections: NameSet | undefined;
  readonly agents: NameSet | undefined;
}

export function makeGrant(patterns: readonly string[], constraints: ResourceConstraints): Grant {
  const { models, collections, agents } = constraints;
  return Object.freeze({
    patterns,
    constraints,
    permissions: compilePatterns(patterns),
    models: models ? compileNames(models, 'leave out') : undefined,
    collections: collections ? compileNames(collections, 'leave out') : undefined,
    agents: agents ? compileNames(agents, 'leave out') : undefined,
  });
}

export function grantCoversPermission(grant: Grant, permissions: readonly Permission[]): boolean {
  return coversAny(grant.permissions, permissions);
}

/** A resource that the request does not name is covered where its kind is not constrained, or constrained to `*`. */
function grantCoversResource(grant: Grant, resource: Resource, work: RuleWork): boolean {
  const names = grant[resource.kind];
  if (names === undefined || names.any) return true;
  return resource.name !== undefined && namesMatch(names, resource.name, work);
}

export function grantCoversResources(grant: Grant, resources: readonly Resource[], work: RuleWork): boolean {
  for (const resource of resources) if (!grantCoversResource(grant, resource, work)) return false;
  return true;
}
