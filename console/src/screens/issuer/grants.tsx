/** The roles that the mapping of an issuer gives: each rule as a sentence, with the permissions of its roles. */

import { useQueries } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { ProblemError, type Role } from '../../../../client/index.ts';
import { useCatalog } from '../../api/catalog.ts';
import { useTenant } from '../../api/session.ts';
import { issuers as text } from '../../text/en/issuers.ts';
import { Small } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { sentenceOf } from '../../ui/problem.tsx';
import { summaryOf } from '../roles/summary.ts';
import { grantedRoles, isPart, type UsersFields } from './draft.ts';
import styles from './issuer.module.css';

/** @param users the draft's; undefined: tokens prove keys only */
export function Grants({ users }: { readonly users: UsersFields | undefined }) {
  const says = useRoleTexts(grantedRoles(users));
  const rules = (users?.roles ?? []).filter((rule) => !isPart(rule) && rule.roles.length > 0);
  const defaults = users?.default_roles ?? [];
  return (
    <section aria-label={text.grants}>
      <SectionHead title={text.grants} />
      {users === undefined ? <Small>{text.grantsNothing}</Small> : null}
      {users !== undefined && rules.length + defaults.length === 0 ? <Small>{text.grantsNoRoles}</Small> : null}
      {defaults.length === 0 ? null : <Grant says={text.everyUser} roles={defaults} texts={says} />}
      {rules.map(({ claim, in: values, roles }) => (
        <Grant
          key={JSON.stringify([claim, values])}
          says={text.ifClaim(claim, text.or(values))}
          roles={roles}
          texts={says}
        />
      ))}
    </section>
  );
}

interface GrantProps {
  readonly says: string;
  readonly roles: readonly string[];
  readonly texts: ReadonlyMap<string, string>;
}

function Grant({ says, roles, texts }: GrantProps) {
  return (
    <div className={styles.grant}>
      <p>{says}</p>
      <ul>
        {roles.map((name) => (
          <li key={name}>
            <Link to="/roles/$name" params={{ name }}>
              {name}
            </Link>
            <Small>{texts.get(name)}</Small>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** The permissions of each role as a sentence. A caller that must not read roles sees why. */
function useRoleTexts(names: readonly string[]): ReadonlyMap<string, string> {
  const { id: tenant, client } = useTenant();
  const { meaning } = useCatalog();
  const found = useQueries({
    queries: names.map((name) => ({
      queryKey: [tenant, 'role', name, 'granted'],
      queryFn: ({ signal }: { readonly signal: AbortSignal }): Promise<Role> => client.roles.get(name, { signal }),
      retry: false,
    })),
  });
  return new Map(
    names.map((name, index) => {
      const role = found[index];
      if (role?.data !== undefined) {
        return [name, summaryOf(role.data.permissions, role.data.resource_constraints, meaning)];
      }
      return [name, role?.isError === true ? faultOf(role.error) : ''];
    }),
  );
}

function faultOf(error: unknown): string {
  return error instanceof ProblemError && error.status === 404 ? text.roleMissing : sentenceOf(error);
}
