/**
 * One check of `npm run test:deploy`. Each file in scripts/deploy exports its `checks`; scripts/test-deploy.ts runs
 * them all.
 */

export type CheckOutcome =
  | { readonly kind: 'ok'; readonly says: string }
  | { readonly kind: 'failed'; readonly says: string }
  /** A tool or a place is missing; `says` names it and how to get it. */
  | { readonly kind: 'unavailable'; readonly says: string };

export interface Check {
  /** A sentence that states what holds. */
  readonly name: string;
  readonly tool?: { readonly name: string; readonly version: string };
  /**
   * The check needs something that no package brings, such as a cluster: without it, continuous integration passes as
   * well.
   */
  readonly optional?: true;
  run(): Promise<CheckOutcome>;
}
