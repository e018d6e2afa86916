/** Asks what would be decided about a request if proposed roles and policies were in force. Nothing is saved, counted or audited. */

import type { Explanation } from '../../decision/explain.ts';
import type { Snapshot, TenantView } from '../../decision/model.ts';
import { withProposal } from '../../decision/proposed.ts';
import type { Caller } from '../caller/caller.ts';
import { invalidField } from '../caller/refusals.ts';
import { mayWriteOwner } from '../policies/rules.ts';
import { explainer } from './explain.ts';
import { type ProposalRequest, proposedNames, readProposal } from './proposal.ts';
import { type ExplainParts, type ExplainRequest, resolveExplainRequest } from './resolve.ts';
import { policiesNamed } from './who-can-queries.ts';

export type SimulateRequest = ExplainRequest & ProposalRequest;

export interface Simulation extends Explanation {
  /** What is decided as things are. */
  readonly current: Pick<Explanation, 'decision' | 'status' | 'code' | 'detail' | 'policy'>;
}

/** Proposed policies and roles together, as JSON without spaces in UTF-8. */
export const MAX_PROPOSAL_BYTES = 65_536;

/**
 * Explains a request under a proposal, which belongs to the tenant that the request acts in. The right to ask has been checked: compiling
 * a proposal costs more than an explanation, so a question about oneself needs the right as well.
 * @throws Refusal as an explanation does; `invalid_field` for a proposal that could not be saved or is too large, `escalation` for a
 * global policy of a caller that may not write one
 */
export async function simulateRequest(
  parts: ExplainParts,
  caller: Caller,
  request: SimulateRequest,
): Promise<Simulation> {
  refuseLargeProposal(request);
  const asked = await resolveExplainRequest(parts, { kind: 'caller', caller }, request);
  const tenant = placeOf(asked.snapshot, caller);
  const taken = await policiesNamed(parts.db.knex, tenant.id, proposedNames(request));
  const proposal = readProposal(request, { tenant, taken, mayWriteOwner: (owner) => mayWriteOwner(caller, owner) });
  const explained = await explainer(parts, asked);
  const { decision, status, code, detail, policy } = explained((snapshot) => snapshot);
  return {
    ...explained((snapshot) => withProposal(snapshot, proposal)),
    current: { decision, status, code, detail, policy },
  };
}

function refuseLargeProposal({ policies, roles }: ProposalRequest): void {
  const size = (proposed: unknown): number =>
    proposed === undefined ? 0 : Buffer.byteLength(JSON.stringify(proposed));
  if (size(policies) + size(roles) <= MAX_PROPOSAL_BYTES) return;
  const message = `Proposed policies and roles must be at most ${MAX_PROPOSAL_BYTES / 1024} KiB in total.`;
  throw invalidField(policies === undefined ? '/roles' : '/policies', message);
}

const NO_ROLES: TenantView['roles'] = new Map();

/** Where nobody is proved, or the tenant is none of theirs, it is the caller's. */
function placeOf(snapshot: Snapshot | undefined, caller: Caller): Pick<TenantView, 'id' | 'roles'> {
  return snapshot?.effective ?? caller.snapshot.effective ?? { id: caller.tenant, roles: NO_ROLES };
}
