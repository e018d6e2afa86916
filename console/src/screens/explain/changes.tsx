/** The changes after which the deciding step would pass. Shown only if the answer makes them certain. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Explanation } from '../../../../client/index.ts';
import { useTenant } from '../../api/session.ts';
import { explain as text } from '../../text/en/explain.ts';
import buttons from '../../ui/button.module.css';
import { classes } from '../../ui/classes.ts';
import { SectionHead } from '../../ui/page.tsx';
import { Moment } from '../../ui/time.tsx';
import { nameOf } from './answer.tsx';
import styles from './explain.module.css';
import { policiesInForce } from './reports.tsx';
import type { Subject } from './subject.ts';

interface ChangesProps {
  readonly explanation: Explanation;
  readonly subject: Subject | undefined;
}

type Place =
  | { readonly kind: 'policy' | 'role'; readonly name: string }
  | { readonly kind: 'user' | 'key' | 'tenant' | 'budget'; readonly id: string };

interface Change {
  readonly id: string;
  readonly says: ReactNode;
  readonly place: Place | undefined;
}

interface Wanted {
  readonly small: string;
  readonly changes: readonly Change[];
}

export function Changes({ explanation, subject }: ChangesProps) {
  const tenant = useTenant();
  const owner = useOwner(explanation.code === 'insufficient_permission' ? subject : undefined);
  const wanted = subject === undefined ? undefined : wantedBy(explanation, subject, tenant.id, owner);
  if (wanted === undefined || wanted.changes.length === 0) return null;
  return (
    <section className={styles.changes}>
      <SectionHead title={text.changes} small={wanted.changes.length === 1 ? text.toPass : wanted.small} />
      <ul>
        {wanted.changes.map(({ id, says, place }) => (
          <li key={id}>
            <span>{says}</span>
            {place === undefined ? null : <Open place={place} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

/**
 * Returns the id of the user that owns the key; undefined if the tenant owns it, or if the caller may not read the key.
 */
function useOwner(subject: Subject | undefined): string | undefined {
  const { id: tenant, client } = useTenant();
  const id = subject?.type === 'api_key' ? subject.id : '';
  const key = useQuery({
    queryKey: [tenant, 'keys', 'owner', id],
    queryFn: ({ signal }) => client.apiKeys.get(id, { signal }),
    enabled: id !== '',
    retry: false,
  });
  return key.data?.user_id ?? undefined;
}

function wantedBy(
  explanation: Explanation,
  subject: Subject,
  tenant: string,
  owner: string | undefined,
): Wanted | undefined {
  const { code, permission, grants } = explanation;
  const needed = <code>{permission}</code>;
  const self: Place = { kind: subject.type === 'user' ? 'user' : 'key', id: subject.id };
  switch (code) {
    case 'denied_by_policy':
      return {
        small: text.allOf,
        changes: policiesInForce(explanation)
          .filter(({ effect, matched }) => effect === 'deny' && matched)
          .map(({ name }) => ({
            id: name,
            says: (
              <>
                <b>{name}</b> {text.mustNotMatch}
              </>
            ),
            place: { kind: 'policy', name },
          })),
      };
    case 'insufficient_permission': {
      const lacks = (kind: (typeof grants)[number]['kind']): boolean =>
        grants.filter((grant) => grant.kind === kind).every(({ outcome }) => outcome === 'no_permission');
      if (subject.type === 'user') {
        return {
          small: text.toPass,
          changes: [
            {
              id: 'role',
              says: (
                <>
                  {text.roleMustGive} {needed}.
                </>
              ),
              place: self,
            },
          ],
        };
      }
      const scopes = {
        id: 'scopes',
        says: (
          <>
            {text.scopesMustGive} {needed}.
          </>
        ),
        place: self,
      };
      const ownersRoles: Change = {
        id: 'owner',
        says: (
          <>
            {text.ownerMustGive} {needed}.
          </>
        ),
        place: owner === undefined ? undefined : { kind: 'user', id: owner },
      };
      const isOwnerShown = grants.some(({ kind }) => kind === 'owner_role') || !lacks('scopes');
      return {
        small: text.allOf,
        changes: [...(lacks('scopes') ? [scopes] : []), ...(isOwnerShown && lacks('owner_role') ? [ownersRoles] : [])],
      };
    }
    case 'resource_not_permitted':
      return {
        small: subject.type === 'user' ? text.anyOf : text.allOf,
        changes: grants
          .filter(({ outcome }) => outcome === 'no_resources')
          .map((grant) => ({
            id: `${grant.kind} ${grant.name}`,
            says: (
              <>
                <b>{nameOf(grant)}</b> {text.mustReach} <code>{explanation.resources.join(', ')}</code>.
              </>
            ),
            place: grant.name === null ? self : { kind: 'role', name: grant.name },
          })),
      };
    case 'tenant_suspended':
      return {
        small: text.toPass,
        changes: [{ id: 'tenant', says: text.tenantMustBeActive, place: { kind: 'tenant', id: tenant } }],
      };
    case 'max_tokens_exceeded':
      return {
        small: text.toPass,
        changes: [{ id: 'tokens', says: text.lessTokens, place: { kind: 'tenant', id: tenant } }],
      };
    case 'usage_required':
      return {
        small: text.toPass,
        changes: [{ id: 'usage', says: text.askForUsage, place: { kind: 'tenant', id: tenant } }],
      };
    case 'rate_limit_exceeded':
    case 'insufficient_quota':
    case 'quota_exceeded':
      return {
        small: text.anyOf,
        changes: [...limitChanges(explanation, self, tenant), ...budgetChanges(explanation)],
      };
    case 'invalid_credential':
      return { small: text.toPass, changes: [credentialChange(explanation, self)] };
    default:
      return undefined;
  }
}

/** The request passes after the limit resets, or at once if the limit is raised. */
function limitChanges({ limits }: Explanation, self: Place, tenant: string): readonly Change[] {
  return limits
    .filter(({ exceeded }) => exceeded)
    .flatMap(({ name, of, resets_at: resetsAt }): readonly Change[] => {
      const limit = (
        <>
          {text.limitOf[of]} <b>{text.limitNames[name]}</b>
        </>
      );
      // A key leads to its owner.
      const place: Place = of === 'tenant' ? { kind: 'tenant', id: tenant } : self;
      const higher: Change = {
        id: `${name} ${of}`,
        says: (
          <>
            {text.raise} {limit}.
          </>
        ),
        place,
      };
      if (resetsAt === null) return [higher];
      const says = (
        <>
          {text.waitUntil} <Moment time={resetsAt} />: {limit} {text.isReset}
        </>
      );
      return [{ id: `${name} ${of} time`, says, place: undefined }, higher];
    });
}

/** The request passes after the budgets without room reset, or at once if they are raised. */
function budgetChanges({ budgets }: Explanation): readonly Change[] {
  return budgets
    .filter(({ exceeded, action }) => exceeded && action === 'block')
    .flatMap(({ id, name, resets_at: resetsAt }): readonly Change[] => {
      const higher: Change = {
        id,
        says: (
          <>
            {text.raiseBudget} <b>{name}</b>.
          </>
        ),
        place: { kind: 'budget', id },
      };
      if (resetsAt === null) return [higher];
      const says = (
        <>
          {text.waitUntil} <Moment time={resetsAt} />: {text.budget(name)} {text.isReset}
        </>
      );
      return [{ id: `${id} time`, says, place: undefined }, higher];
    });
}

function credentialChange({ steps }: Explanation, self: Place): Change {
  const { reason, user_id: user } = steps.find(({ outcome }) => outcome === 'denied') ?? {};
  if (reason === undefined) return { id: 'credential', says: text.credentialMustHold, place: self };
  const isUser = reason === 'owner_deactivated' && user !== null && user !== undefined;
  return { id: 'credential', says: text.credentialChanges[reason], place: isUser ? { kind: 'user', id: user } : self };
}

function Open({ place }: { readonly place: Place }) {
  const look = classes(buttons.button, buttons.small);
  switch (place.kind) {
    case 'policy':
      return (
        <Link className={look} to="/policies/$name" params={{ name: place.name }}>
          {text.openPolicy}
        </Link>
      );
    case 'role':
      return (
        <Link className={look} to="/roles/$name" params={{ name: place.name }}>
          {text.openRole}
        </Link>
      );
    case 'user':
      return (
        <Link className={look} to="/users/$id" params={{ id: place.id }}>
          {text.openUser}
        </Link>
      );
    case 'key':
      return (
        <Link className={look} to="/keys" search={{ open: place.id }}>
          {text.openKey}
        </Link>
      );
    case 'budget':
      return (
        <Link className={look} to="/budgets/$id" params={{ id: place.id }}>
          {text.openBudget}
        </Link>
      );
    case 'tenant':
      return (
        <Link className={look} to="/tenants" search={{ open: place.id }}>
          {text.openTenant}
        </Link>
      );
    default:
      return place satisfies never;
  }
}
