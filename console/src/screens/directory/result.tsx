/** The result of a test: the sentence, the steps, and the roles from the groups of the user. */

import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { DirectoryTest } from '../../../../client/index.ts';
import { directory as text } from '../../text/en/directory.ts';
import { Facts } from '../../ui/facts.tsx';
import { Note, Tag } from '../../ui/mark.tsx';
import { SectionHead, Sentence } from '../../ui/page.tsx';
import { Passage, type PassageStep, Verdict } from '../../ui/passage.tsx';
import styles from './directory.module.css';

type Step = DirectoryTest['steps'][number];
type StepName = Step['step'];

interface ResultProps {
  readonly answer: DirectoryTest;
  readonly username: string;
  readonly hadPassword: boolean;
}

const ORDER: readonly StepName[] = [
  'connect',
  'tls',
  'service_bind',
  'find_user',
  'user_bind',
  'attributes',
  'groups',
  'roles',
  'tenant',
];

export function Result({ answer: { steps }, username, hadPassword }: ResultProps) {
  const failed = steps.find(({ ok }) => !ok);
  const absent = ORDER.filter((name) => !steps.some(({ step }) => step === name));
  const groups = texts(dataOf(steps, 'groups')?.['groups']);
  return (
    <>
      <Verdict isOpen={failed === undefined}>
        <Sentence>
          {failed === undefined ? (
            <Found steps={steps} username={username} hadPassword={hadPassword} />
          ) : (
            <>
              {text.failedAt} <b>{text.steps[failed.step]}</b>.
            </>
          )}
        </Sentence>
      </Verdict>
      <Passage label={text.passage} steps={passageOf(steps, absent, failed)} />
      {failed === undefined ? <Gaps absent={absent} /> : null}
      <Entry steps={steps} />
      {groups === undefined ? null : <Mapping steps={steps} groups={groups} />}
    </>
  );
}

function Found({ steps, username, hadPassword }: Omit<ResultProps, 'answer'> & { readonly steps: readonly Step[] }) {
  const roles = texts(dataOf(steps, 'roles')?.['roles']) ?? [];
  return (
    <>
      <b>{username}</b> {hadPassword ? text.canSignIn : text.isFound}{' '}
      {roles.length === 0 ? (
        text.withoutRoles
      ) : (
        <>
          {text.withRoles} <b>{roles.join(', ')}</b>
        </>
      )}{' '}
      {text.inTenant} <b>{textOf(dataOf(steps, 'tenant')?.['tenant_id'])}</b>. {hadPassword ? '' : text.noPassword}
    </>
  );
}

function passageOf(
  steps: readonly Step[],
  absent: readonly StepName[],
  failed: Step | undefined,
): readonly PassageStep[] {
  const rows: PassageStep[] = steps.map(({ step, ok, detail, advice }, index) => ({
    number: String(index + 1),
    name: text.steps[step],
    kind: ok ? 'passed' : 'stopped',
    mark: ok ? undefined : text.fails,
    says: (
      <>
        {detail}
        {advice === undefined ? null : <Advice>{advice}</Advice>}
      </>
    ),
  }));
  if (absent.length === 0) return rows;
  const names = absent.map((name) => text.steps[name]).join(', ');
  return [
    ...rows,
    { number: '', name: failed === undefined ? text.notTried : text.notReached, kind: 'skipped', says: names },
  ];
}

function Advice({ children }: { readonly children: ReactNode }) {
  return (
    <div className={styles.advice}>
      <Note tone="care">
        <b>{text.advice}</b> {children}
      </Note>
    </div>
  );
}

/** The parts that a login does not need. They are certain only after all steps have passed. */
function Gaps({ absent }: { readonly absent: readonly StepName[] }) {
  const gaps = (['tls', 'service_bind'] as const).filter((name) => absent.includes(name));
  if (gaps.length === 0) return null;
  return (
    <div className={styles.notes}>
      {gaps.map((name) => (
        <Note key={name} tone="care">
          {text.missing[name]}
        </Note>
      ))}
    </div>
  );
}

function Entry({ steps }: { readonly steps: readonly Step[] }) {
  const found = dataOf(steps, 'find_user');
  const read = dataOf(steps, 'attributes');
  if (found === undefined) return null;
  const code = (value: unknown): ReactNode => (textOf(value) === undefined ? null : <code>{textOf(value)}</code>);
  return (
    <section className={styles.part}>
      <SectionHead title={text.found} />
      <Facts
        facts={[
          { name: text.dn, value: code(found['dn']) },
          { name: text.type, value: textOf(found['type']) ?? null },
          { name: text.identity, value: code(read?.['id']) },
          { name: text.loginName, value: textOf(read?.['username']) ?? null },
          { name: text.email, value: read === undefined ? null : (textOf(read['email']) ?? text.noEmail) },
          { name: text.fullName, value: textOf(read?.['name']) ?? null },
          { name: text.state, value: textOf(read?.['state']) ?? null },
        ]}
      />
    </section>
  );
}

function Mapping({ steps, groups }: { readonly steps: readonly Step[]; readonly groups: readonly string[] }) {
  const roles = texts(dataOf(steps, 'roles')?.['roles']);
  const tenant = textOf(dataOf(steps, 'tenant')?.['tenant_id']);
  return (
    <section className={styles.part}>
      <SectionHead title={text.mapping} small={text.mappingSays} />
      <Facts
        facts={[
          {
            name: text.groups,
            value:
              groups.length === 0 ? (
                text.noGroups
              ) : (
                <ul className={styles.list}>
                  {groups.map((group) => (
                    <li key={group}>
                      <code>{group}</code>
                    </li>
                  ))}
                </ul>
              ),
          },
          {
            name: text.roles,
            value:
              roles === undefined
                ? null
                : roles.length === 0
                  ? text.noRoles
                  : roles.map((name) => (
                      <Link key={name} to="/roles/$name" params={{ name }} search={{ tenant }}>
                        <Tag>{name}</Tag>
                      </Link>
                    )),
          },
          {
            name: text.tenant,
            value:
              tenant === undefined ? null : (
                <Link to="/tenants" search={{ open: tenant }}>
                  {tenant}
                </Link>
              ),
          },
        ]}
      />
    </section>
  );
}

function dataOf(steps: readonly Step[], name: StepName): Step['data'] {
  return steps.find(({ step }) => step === name)?.data;
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return typeof value === 'object' && value !== null && 'kind' in value && typeof value.kind === 'string'
    ? value.kind
    : undefined;
}

function texts(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : undefined;
}
