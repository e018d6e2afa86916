/** Explains the decision as if proposed roles and policies were in force. Nothing is saved, counted or recorded. */

import type { DecisionExplanation } from '../../decision/explain.ts';
import type { Snapshot, TenantView } from '../../decision/model.ts';
import { withProposal } from '../../decision/proposed.ts';
import type { Caller } from '../caller/caller.ts';
import { invalidField } from '../caller/refusals.ts';
import { mayWriteOwner } from '../policies/rules.ts';
import { explainer } from './explain.ts';
import { proposedNames, readProposal } from './proposal.ts';
import { type ExplainParts, resolveExplainRequest } from './resolve.ts';
import { MAX_PROPOSAL_BYTES, type ProposalRequest, type SimulateRequest } from './schemas.ts';
import { policiesNamed } from './who-can-queries.ts';

interface SimulatedExplanation extends DecisionExplanation {
  /** The decision without the proposal. */
  readonly current: Pick<DecisionExplanation, 'decision' | 'status' | 'code' | 'detail' | 'policy'>;
}

/**
 * Explains a request under a proposal for the tenant that the request acts in. The endpoint requires `admin:policies`,
 * also for a request about the caller itself, because the compilation of a proposal costs more than an explanation.
 * @throws Refusal like an explanation; `invalid_field` for a proposal that could not be saved or is too large;
 *   `escalation` for a global policy unless the caller may write one
 */
export async function simulate(
  parts: ExplainParts,
  caller: Caller,
  request: SimulateRequest,
): Promise<SimulatedExplanation> {
  refuseLargeProposal(request);
  const resolved = await resolveExplainRequest(parts, { kind: 'caller', caller }, request);
  const tenant = tenantOf(resolved.snapshot, caller);
  const taken = await policiesNamed(parts.db.knex, tenant.id, proposedNames(request));
  const proposal = readProposal(request, { tenant, taken, mayWriteOwner: (owner) => mayWriteOwner(caller, owner) });
  const explained = await explainer(parts, resolved);
  const { decision, status, code, detail, policy } = explained((snapshot) => snapshot);
  return {
    ...explained((snapshot) => withProposal(snapshot, proposal)),
    current: { decision, status, code, detail, policy },
  };
}

export function refuseLargeProposal({ policies, roles }: ProposalRequest): void {
  const size = (proposed: unknown): number =>
    proposed === undefined ? 0 : Buffer.byteLength(JSON.stringify(proposed));
  if (size(policies) + size(roles) <= MAX_PROPOSAL_BYTES) return;
  const message = `Proposed policies and roles must be at most ${MAX_PROPOSAL_BYTES / 1024} KiB in total.`;
  throw invalidField(policies === undefined ? '/roles' : '/policies', message);
}

const NO_ROLES: TenantView['roles'] = new Map();

/** Returns the tenant of the proposal. Without a proved principal in its tenant, it is the caller's tenant. */
function tenantOf(snapshot: Snapshot | undefined, caller: Caller): Pick<TenantView, 'id' | 'roles'> {
  return snapshot?.effective ?? caller.snapshot.effective ?? { id: caller.tenant, roles: NO_ROLES };
}
