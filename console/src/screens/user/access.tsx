/** The permissions of the roles of a user, and their constraints. */

import { useQueries } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Fragment } from 'react';
import type { Policy, Role, User } from '../../../../client/index.ts';
import { useCatalog } from '../../api/catalog.ts';
import { constraintPhrases, coversAny, effective, shortenedList } from '../../api/permissions.ts';
import { useTenant } from '../../api/session.ts';
import { users as text } from '../../text/en/users.ts';
import { Empty, Note, Skeleton } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import styles from './user.module.css';

interface HeldRole {
  readonly name: string;
  readonly permissions: readonly string[];
  readonly role: Role;
  /** The policies attached to it; empty if the caller may not read them. */
  readonly policies: readonly Policy[];
}

const ADMIN = 'admin';
const POLICIES = 50;

export function Access({ user }: { readonly user: User }) {
  const { id: tenant, client } = useTenant();
  const catalog = useCatalog();
  const names = [...new Set([...user.roles, ...user.directory_roles, ...user.issuer_roles])];
  const found = useQueries({
    queries: names.map((name) => ({
      queryKey: [tenant, 'role', name, 'held'],
      queryFn: async ({ signal }: { readonly signal: AbortSignal }): Promise<HeldRole> => {
        const role = await client.roles.get(name, { signal });
        const page = client.request('GET', '/v1/iam/roles/{name}/policies', {
          path: { name },
          query: { limit: POLICIES },
          signal,
        });
        const policies = await page.then(
          ({ data }) => data,
          () => [],
        );
        return { name, permissions: role.permissions, role, policies };
      },
      retry: false,
    })),
  });
  const failed = catalog.failure ?? failureOf(found.find(({ isError }) => isError));
  const held = found.flatMap(({ data }) => (data === undefined ? [] : [data]));
  const isLoading = catalog.isLoading || found.some(({ isPending }) => isPending);
  const { granted, missing } = effective(
    held,
    (role, permission) =>
      deniesOf(role, permission)
        .map(({ name }) => name)
        .join(' '),
    names.includes(ADMIN),
    catalog.known,
  );
  const n = granted.reduce((sum, { permissions }) => sum + permissions.length, 0);
  return (
    <>
      <div>
        <SectionHead
          title={text.may(user.name)}
          small={isLoading ? undefined : text.maySays(n, n + missing.length, catalog.isPart)}
          link={
            <Link to="/explain" search={{ user: user.id }}>
              {text.explain}
            </Link>
          }
        />
        {failed === undefined ? null : <Problem error={failed.error} onRetry={failed.retry} />}
        {user.status === 'active' ? null : <Note>{text.inactive}</Note>}
        {isLoading ? <Skeleton width={3} /> : null}
        {!isLoading && failed === undefined && granted.length === 0 ? (
          <Empty title={text.noAccess}>{text.noAccessSays}</Empty>
        ) : null}
        {granted.length === 0 ? null : (
          <table className={styles.access}>
            <thead>
              <tr>
                <th>{text.permission}</th>
                <th>{text.from}</th>
                <th className={styles.given}>{text.given}</th>
                <th>{text.narrowed}</th>
              </tr>
            </thead>
            <tbody>
              {granted.map(({ permissions, givers }) => (
                <tr key={permissions[0]}>
                  <td>
                    {permissions.map((permission) => (
                      <code key={permission} title={catalog.meaning(permission)}>
                        {permission}
                      </code>
                    ))}
                  </td>
                  <td>
                    {givers.map(({ name }) => (
                      <Link key={name} to="/roles/$name" params={{ name }}>
                        {name}
                      </Link>
                    ))}
                  </td>
                  <td className={styles.given}>
                    {givers.map(({ name }) => (
                      <span key={name}>{giverOf(user, name)}</span>
                    ))}
                  </td>
                  <td>
                    {givers.map((giver) => (
                      <Narrowed key={giver.name} giver={giver} permission={permissions[0] ?? ''} />
                    ))}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
      {isLoading || missing.length === 0 || granted.length === 0 ? null : (
        <p className={styles.foot}>
          {text.notGiven}{' '}
          {shortenedList(missing, catalog.known).map(({ pattern, n }, index) => (
            <Fragment key={pattern}>
              {index === 0 ? null : ', '}
              <code>{pattern}</code>
              {n > 1 ? ` (${n})` : null}
            </Fragment>
          ))}
        </p>
      )}
      <p className={styles.foot}>{text.policiesToo}</p>
    </>
  );
}

interface Failed {
  readonly error: unknown;
  readonly refetch: () => unknown;
}

function failureOf(failed: Failed | undefined) {
  return failed === undefined ? undefined : { error: failed.error, retry: () => void failed.refetch() };
}

function giverOf({ roles, directory_roles: directory, issuer_roles: issuers }: User, name: string): string {
  return [
    ...(roles.includes(name) ? [text.byHand] : []),
    ...(directory.includes(name) ? [text.byDirectory] : []),
    ...(issuers.includes(name) ? [text.byIssuer] : []),
  ].join(', ');
}

/** The denies in force attached to the role that name the permission. */
function deniesOf({ policies }: HeldRole, permission: string): readonly Policy[] {
  return policies.filter(
    ({ effect, mode, enabled, actions }) =>
      effect === 'deny' && mode === 'enforce' && enabled && coversAny(actions, permission),
  );
}

/** The constraints of the role, and the denies attached to it. Those are the same for all permissions of a row. */
function Narrowed({ giver, permission }: { readonly giver: HeldRole; readonly permission: string }) {
  const phrases = constraintPhrases(giver.role.resource_constraints);
  const denies = deniesOf(giver, permission);
  if (phrases.length === 0 && denies.length === 0) return <span className={styles.dim}>{text.nothingNarrows}</span>;
  return (
    <span>
      {phrases.join('; ')}
      {denies.map(({ name, description }, index) => (
        <span key={name}>
          {index === 0 && phrases.length === 0 ? null : '; '}
          <Link to="/policies/$name" params={{ name }}>
            {name}
          </Link>{' '}
          {description === '' ? text.policyDenies : description}
        </span>
      ))}
    </span>
  );
}
