/**
 * Lists whose caller chooses the order with the parameter `sort`: a member, or `-` and a member for the descending
 * order. A cursor belongs to one order, because `paged` binds it to the query that `inOrder` returns.
 */

import { type TOptional, type TUnsafe, Type } from 'typebox';
import { Fault } from '../../domain/errors.ts';

export interface ListOrder<Member extends string> {
  readonly member: Member;
  readonly descending: boolean;
}

interface SortQuery {
  readonly sort?: string;
}

export interface Orders<Member extends string> {
  /** The schema of `sort`. */
  readonly parameter: TOptional<TUnsafe<string>>;
  /** Returns the order that a validated query asks for. */
  orderOf(query: SortQuery): ListOrder<Member>;
  /** Names the default order, so that a cursor of it is also valid for a request that names it. */
  inOrder<Query extends SortQuery>(query: Query): Query & { readonly sort: string };
}

/**
 * @param members that a list can be sorted by
 * @param byDefault one of them, with `-` for the descending order
 */
export function ordersBy<const Member extends string>(
  members: readonly Member[],
  byDefault: NoInfer<Member | `-${Member}`>,
): Orders<Member> {
  const orders = new Map<string, ListOrder<Member>>(
    members.flatMap((member) => [
      [member, { member, descending: false }],
      [`-${member}`, { member, descending: true }],
    ]),
  );
  return {
    parameter: Type.Optional(
      Type.Unsafe<string>({
        type: 'string',
        enum: [...orders.keys()],
        description: `The order of the rows; \`-\` sorts downwards. Rows without a value come last in both directions. Default: \`${byDefault}\`.`,
      }),
    ),
    orderOf({ sort = byDefault }) {
      const order = orders.get(sort);
      if (order === undefined) throw new Fault('the schema of a list accepts an order that the list does not have');
      return order;
    },
    inOrder: (query) => ({ ...query, sort: query.sort ?? byDefault }),
  };
}
