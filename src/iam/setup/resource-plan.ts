/** Plans the resources of one type: compares those of a setup file with the stored ones, and returns the actions. */

import { Refusal } from '../../domain/errors.ts';
import type { TenantId } from '../../domain/ids.ts';
import type { ApplyContext, PlanAction, PlannedAction } from './action.ts';
import { difference, type SetupMembers, valuesAfter, viewOf, type Wanted } from './members.ts';
import type { SetupError } from './read.ts';

/** One type of resource in a setup file, with the functions that execute an action and record it in the audit log. */
export interface SetupResource<Row extends Values, Values extends object, Key extends string> {
  readonly type: PlanAction['type'];
  /** The tenant of the resources; undefined for tenants and global policies. */
  readonly tenant: TenantId | undefined;
  readonly members: SetupMembers<Values>;
  keyOf(row: Row): Key;
  create(context: ApplyContext, key: Key, values: Values): Promise<void>;
  change(context: ApplyContext, before: Row, values: Values): Promise<void>;
  remove(context: ApplyContext, row: Row): Promise<void>;
}

/**
 * @param wanted undefined: the file does not state resources of this type
 * @param prune deletes resources that the file does not name
 */
export function planResources<Row extends Values, Values extends object, Key extends string>(
  resource: SetupResource<Row, Values, Key>,
  wanted: readonly Wanted<Values, Key>[] | undefined,
  stored: readonly Row[],
  prune: boolean,
  errors: SetupError[],
): readonly PlannedAction<Row, Values, Key>[] {
  return planEach(resource, wanted, stored, prune, (one, before) => planResource(resource, one, before, errors));
}

/**
 * Plans with values that `plan` reads, as `planResources` does.
 * @param plan plans a resource of the file. `before` is undefined for a new one
 */
export function planEach<
  W extends { readonly key: Key },
  Row extends Values,
  Values extends object,
  Key extends string,
>(
  resource: SetupResource<Row, Values, Key>,
  wanted: readonly W[] | undefined,
  stored: readonly Row[],
  prune: boolean,
  plan: (one: W, before: Row | undefined) => readonly PlannedAction<Row, Values, Key>[],
): readonly PlannedAction<Row, Values, Key>[] {
  if (wanted === undefined) return [];
  const before = new Map(stored.map((row) => [resource.keyOf(row), row]));
  const named = new Set(wanted.map(({ key }) => key));
  const removed = prune ? stored.filter((row) => !named.has(resource.keyOf(row))) : [];
  return [
    ...wanted.flatMap((one) => plan(one, before.get(one.key))),
    ...removed.map((row) => planRemoval(resource, row)),
  ];
}

export function planResource<Row extends Values, Values extends object, Key extends string>(
  resource: SetupResource<Row, Values, Key>,
  wanted: Wanted<Values, Key>,
  before: Row | undefined,
  errors: SetupError[],
): readonly PlannedAction<Row, Values, Key>[] {
  const after = valuesAfter(resource.members, wanted, before);
  if ('values' in after) return planValues(resource, wanted.key, before, after.values);
  const message = `This member is required for a new ${resource.type}.`;
  errors.push(...after.missing.map((member) => ({ path: `${wanted.at}/${member}`, message })));
  return [];
}

/** Plans a resource with these values. Returns no action if the stored one has them. */
export function planValues<Row extends Values, Values extends object, Key extends string>(
  resource: SetupResource<Row, Values, Key>,
  name: Key,
  before: Row | undefined,
  values: Values,
): readonly PlannedAction<Row, Values, Key>[] {
  const { type, tenant, members } = resource;
  const changes = difference(before === undefined ? {} : viewOf(members, before), viewOf(members, values));
  const action = { type, tenant, name, changes, before, after: values } as const;
  if (before === undefined) {
    return [{ ...action, verb: 'create', run: (context) => resource.create(context, name, values) }];
  }
  if (changes.length === 0) return [];
  return [{ ...action, verb: 'change', run: (context) => resource.change(context, before, values) }];
}

export function planRemoval<Row extends Values, Values extends object, Key extends string>(
  resource: SetupResource<Row, Values, Key>,
  row: Row,
): PlannedAction<Row, Values, Key> {
  const { type, tenant } = resource;
  const run = (context: ApplyContext) => resource.remove(context, row);
  return { verb: 'delete', type, tenant, name: resource.keyOf(row), changes: [], before: row, after: undefined, run };
}

/** Reports the refusal of a reader at the place of its resource. */
export function readAt<T>(at: string, errors: SetupError[], read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Refusal) || error.extras.errors === undefined) throw error;
    errors.push(...error.extras.errors.map(({ path, message }) => ({ path: at + path, message })));
    return undefined;
  }
}

/** @param Written what the statements return of a row */
interface AuditedResource<Row extends Values & Written, Values extends object, Key extends string, Written>
  extends Pick<SetupResource<Row, Values, Key>, 'tenant' | 'members' | 'keyOf'> {
  readonly type: Exclude<PlanAction['type'], 'user'>;
  /** The id of the target in the audit log. */
  idOf(row: Written): string;
  /** The tenant that the audit row belongs to. Default: that of the resources. */
  tenantOf?(row: Written): TenantId;
  /** Returns the resource that the audit row shows. */
  show(row: Written, nowMs: number): object;
  insert(context: ApplyContext, key: Key, values: Values): Promise<Written>;
  update(context: ApplyContext, before: Row, values: Values): Promise<Written>;
  remove(context: ApplyContext, row: Row): Promise<void>;
  /** The verb of an update in the audit log. Default: `update`. */
  updateVerb?(before: Written, after: Written): string;
}

/** Returns a resource whose functions run the statements and record each as the API does. */
export function auditedResource<Row extends Values & Written, Values extends object, Key extends string, Written = Row>(
  resource: AuditedResource<Row, Values, Key, Written>,
): SetupResource<Row, Values, Key> {
  const { type, tenant, members, keyOf, idOf, show } = resource;
  const record = ({ audit }: ApplyContext, verb: string, row: Written, states: { before?: object; after?: object }) =>
    audit({
      action: `${type}.${verb}`,
      target: { type, id: idOf(row) },
      tenant: resource.tenantOf?.(row) ?? tenant,
      ...states,
    });
  return {
    ...{ type, tenant, members, keyOf },
    create: async (context, key, values) => {
      const row = await resource.insert(context, key, values);
      await record(context, 'create', row, { after: show(row, context.nowMs) });
    },
    change: async (context, before, values) => {
      const row = await resource.update(context, before, values);
      const verb = resource.updateVerb?.(before, row) ?? 'update';
      await record(context, verb, row, { before: show(before, context.nowMs), after: show(row, context.nowMs) });
    },
    remove: async (context, row) => {
      await resource.remove(context, row);
      await record(context, 'delete', row, { before: show(row, context.nowMs) });
    },
  };
}

/** Returns the values of the resources after these actions, by name. */
export function valuesByName<Values, Name extends string>(
  stored: readonly (Values & { readonly name: Name })[],
  actions: readonly PlannedAction<unknown, Values, Name>[],
): ReadonlyMap<Name, Values> {
  const values = new Map<Name, Values>(stored.map((row) => [row.name, row]));
  for (const { name, after } of actions) {
    if (after === undefined) values.delete(name);
    else values.set(name, after);
  }
  return values;
}
