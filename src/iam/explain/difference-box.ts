/** Shows one box of a difference. */

import type { Box, NamePatterns, NameRegion, ResourceRegion, Witness } from '../../decision/difference/model.ts';
import { RESOURCE_KINDS, type ResourceKind } from '../../decision/model.ts';
import type { BoxNames, DifferenceBox } from './difference-schemas.ts';

/** @param requests its metered requests; null: unknown */
export function boxResource(box: Box, requests: number | null): DifferenceBox {
  const { roles, users, keys, permissions, self, addresses, clocks, by, witness } = box;
  const regions = RESOURCE_KINDS.flatMap((kind): readonly KindRegion[] => {
    const region = box.resources[kind];
    return region === undefined || region === 'none' ? [] : [{ kind, region }];
  });
  const [clock, ...otherClocks] = clocks;
  return {
    principals: { roles: roles.any, without_roles: roles.none, exact: !roles.inexact, users, keys },
    permission: permissions[0] ?? '',
    permissions,
    self,
    resources: byKind(regions, ({ patterns }) => patterns, true),
    except: byKind(regions, ({ except }) => except, false),
    ...(regions.every(isPlain) ? {} : { regions: regions.map(exactRegion) }),
    ...(addresses === undefined ? {} : { addresses }),
    ...(clock === undefined ? {} : { week: clock.week, timezone: clock.timezone }),
    ...(otherClocks.length === 0 ? {} : { clocks: clocks.map(({ timezone, week }) => ({ timezone, week })) }),
    by: by.name,
    by_kind: by.kind,
    witness: witnessResource(witness),
    recent_requests: requests,
  };
}

interface KindRegion {
  readonly kind: ResourceKind;
  readonly region: ResourceRegion;
}

function byKind(
  regions: readonly KindRegion[],
  read: (set: NamePatterns) => readonly string[],
  withEmpty: boolean,
): DifferenceBox['resources'] {
  return Object.fromEntries(
    regions
      .map(({ kind, region }) => [kind, [...new Set(region.each.sets.flatMap(read))]] as const)
      .filter(([, names]) => withEmpty || names.length > 0),
  );
}

/** Reports whether `resources` and `except` say everything. A request without a name matches `*` only. */
function isPlain({ region: { each, some } }: KindRegion): boolean {
  const [set, ...others] = each.sets;
  const everyName = set?.patterns.includes('*') === true && set.except.length === 0;
  return (
    some.length === 0 && others.length === 0 && set !== undefined && set.also.length === 0 && each.unnamed === everyName
  );
}

function exactRegion({ kind, region: { each, some } }: KindRegion): NonNullable<DifferenceBox['regions']>[number] {
  return { kind, each: setsOf(each), some: some.map(setsOf), unnamed: each.unnamed };
}

function setsOf({ sets }: NameRegion): BoxNames[] {
  return sets.map(({ patterns, also, except }) => ({ patterns, also, except }));
}

function witnessResource(witness: Witness): DifferenceBox['witness'] {
  return {
    subject: witness.principal.id,
    method: witness.method ?? null,
    path: witness.path ?? null,
    model: witness.resources.find(({ kind }) => kind === 'models')?.name ?? null,
    body: witness.body ?? null,
    client_ip: witness.clientAddress ?? null,
    time: new Date(witness.timeMs).toISOString(),
  };
}
