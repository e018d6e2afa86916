/**
 * The usual endpoints of a resource, which differ only in their schemas and use cases: list, create, get, update,
 * delete.
 */

import type { Static, TSchema } from 'typebox';
import type { ErrorCode } from '../domain/errors.ts';
import { present } from '../domain/objects.ts';
import type { Access, ManagementPermission } from '../iam/caller/authorize.ts';
import type { Component } from '../iam/schema/keywords.ts';
import { listOf } from '../iam/schema/resource-parts.ts';
import { type Answers, DONE, makes, shows, TAGGED } from './answers.ts';
import { type Answer, type CallerRequestInput, callerEndpoint, type Endpoint } from './endpoint.ts';
import type { PathTarget } from './refused.ts';
import type { Nothing } from './validation.ts';

interface ResourceDescription<P extends 'id' | 'name'> {
  /** `/v1/iam/roles` */
  readonly path: string;
  /** The path parameter of one resource. The resource has its value as the member of the same name. */
  readonly param: P;
  /** The type of one resource in the audit log. */
  readonly type: PathTarget['type'];
  /** In descriptions: `['role', 'roles']`. */
  readonly nouns: readonly [one: string, several: string];
  readonly schema: Component;
  /** Applies to each endpoint that does not state its own. */
  readonly permission: Access;
  /** See `CallerEndpoint`. */
  readonly unlessSelf?: ManagementPermission;
  /** See `CallerEndpoint`. */
  readonly needs?: string;
}

/** One endpoint, without the members that follow from its kind. */
interface Operation {
  readonly operationId: string;
  readonly summary: string;
  /** Default: the resource's. */
  readonly permission?: Access;
  /** Default: the resource's. */
  readonly needs?: string;
  /** Codes of the use case, beside `not_found` and `precondition_failed` on one resource. */
  readonly refusals?: readonly ErrorCode[];
  /** The response's schema. Default: the resource's. */
  readonly shows?: { readonly description: string; readonly schema: Component };
}

/** Runs the use case. `id` is the path parameter of the resource; empty in a list and for a new resource. */
type Run<B extends TSchema, Q extends TSchema, R> = (
  input: CallerRequestInput<Static<B>, Static<Q>>,
  id: string,
) => Promise<R>;

interface Writes<B extends TSchema, Q extends TSchema, R = object> extends Operation {
  /** Default: the request has no body, or an empty object. */
  readonly body?: B;
  /** Default: no parameters. */
  readonly query?: Q;
  readonly run: Run<B, Q, R>;
}

type Reads<Q extends TSchema, R = object> = Omit<Writes<Nothing, Q, R>, 'body'>;

/** The members of an endpoint that follow from its kind. */
type Kind = Pick<Endpoint, 'method' | 'path' | 'answers' | 'refusals'> & { readonly target?: PathTarget };

const REFUSALS = { ofGet: ['not_found'], ofWrite: ['not_found', 'precondition_failed'] } as const;

const shown = (body: object): Answer => ({ status: 200, body });

export function resourceEndpoints<const P extends 'id' | 'name'>(resource: ResourceDescription<P>) {
  const { path, param, type, schema } = resource;
  const [one, several] = resource.nouns;
  const item = { path: `${path}/:${param}`, target: { type, param } };
  const build = <B extends TSchema, Q extends TSchema, R>(
    operation: Writes<B, Q, R>,
    kind: Kind,
    answer: (result: R) => Answer,
  ): Endpoint =>
    callerEndpoint({
      ...kind,
      ...described(operation, resource),
      refusals: [...kind.refusals, ...(operation.refusals ?? [])],
      body: operation.body,
      query: operation.query,
      handler: async (input) => answer(await operation.run(input, kind.target === undefined ? '' : input.param(param))),
    });
  const showsItem = ({ shows: own }: Operation, description: string): Answers =>
    shows(own?.description ?? description, own?.schema ?? schema, TAGGED);

  return {
    /** GET of the collection. */
    list: <Q extends TSchema = Nothing>(operation: Reads<Q>) => {
      const answers = shows(`One page of ${several}.`, listOf(schema));
      return build(operation, { method: 'GET', path, answers, refusals: [] }, shown);
    },

    /** POST to the collection. */
    create: <B extends TSchema = Nothing, Q extends TSchema = Nothing>(
      operation: Writes<B, Q, Readonly<Record<P, string>>>,
    ) => {
      const { shows: own } = operation;
      const answers = makes(own?.description ?? `The ${one}.`, own?.schema ?? schema);
      return build(operation, { method: 'POST', path, answers, refusals: [] }, (body) => ({
        status: 201,
        body,
        headers: { location: `${path}/${body[param]}` },
      }));
    },

    get: (operation: Omit<Reads<Nothing>, 'query'>) => {
      const answers = showsItem(operation, `The ${one}.`);
      return build(operation, { ...item, method: 'GET', answers, refusals: REFUSALS.ofGet }, shown);
    },

    /** PUT, and the PATCH that follows from it. */
    update: <B extends TSchema = Nothing, Q extends TSchema = Nothing>(operation: Writes<B, Q>) => {
      const answers = showsItem(operation, `The updated ${one}.`);
      return build(operation, { ...item, method: 'PUT', answers, refusals: REFUSALS.ofWrite }, shown);
    },

    /** POST to `<item>/<name>`, which answers with the resource. */
    action: <B extends TSchema = Nothing, Q extends TSchema = Nothing>(name: string, operation: Writes<B, Q>) => {
      const answers = showsItem(operation, `The updated ${one}.`);
      const kind = { ...item, method: 'POST', answers, refusals: REFUSALS.ofWrite } as const;
      return build(operation, { ...kind, path: `${item.path}/${name}` }, shown);
    },

    delete: <Q extends TSchema = Nothing>(operation: Reads<Q, void>) => {
      const kind = { ...item, method: 'DELETE', answers: DONE, refusals: REFUSALS.ofWrite } as const;
      return build(operation, kind, () => ({ status: 204 }));
    },
  };
}

function described<P extends 'id' | 'name'>(operation: Operation, resource: ResourceDescription<P>) {
  const { operationId, summary, permission } = operation;
  const { needs: shared, unlessSelf } = permission === undefined ? resource : {};
  const needs = operation.needs ?? shared;
  return {
    operationId,
    summary,
    permission: permission ?? resource.permission,
    ...present({ needs, unlessSelf }),
  };
}
