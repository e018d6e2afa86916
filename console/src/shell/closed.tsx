/** A screen that the caller may not see: what it needs, who can give that, and what the server answered. */

import { useRouter } from '@tanstack/react-router';
import { useEffect } from 'react';
import type { ProblemError } from '../../../client/index.ts';
import { useMe } from '../api/session.ts';
import { common } from '../text/en/common.ts';
import { shell } from '../text/en/shell.ts';
import { Button, LinkButton } from '../ui/button.tsx';
import { Facts } from '../ui/facts.tsx';
import { Icon } from '../ui/icon.tsx';
import { Id, Skeleton, useCopy } from '../ui/mark.tsx';
import page from '../ui/page.module.css';
import { SectionHead } from '../ui/page.tsx';
import { sentenceOf } from '../ui/problem.tsx';
import { Moment } from '../ui/time.tsx';
import styles from './closed.module.css';
import { ClosedDoor } from './closed-door.tsx';
import { type GuardedScreen, NEEDS, type Need } from './needs.ts';
import { useTenantName } from './tenant-name.ts';

interface ClosedProps {
  readonly screen: GuardedScreen;
  /** Undefined while the server has not answered. */
  readonly refusal: ProblemError | undefined;
  readonly refusedAtMs: number;
  readonly onAskAgain: () => void;
}

export function Closed({ screen, refusal, refusedAtMs, onAskAgain }: ClosedProps) {
  const me = useMe();
  const tenant = useTenantName();
  const router = useRouter();
  const { copied, copy } = useCopy();
  const need: Need = NEEDS[screen];
  const title = shell.screens[screen];
  const requestId = refusal?.requestId;
  useEffect(() => {
    document.title = `${title} · Postern`;
  }, [title]);
  return (
    <div className={page.page}>
      <section className={styles.closed}>
        <ClosedDoor />
        <div className={styles.said}>
          <p className={page.crumb}>{`403 · ${refusal?.code ?? 'insufficient_permission'}`}</p>
          <h1 className={page.sentence}>
            {shell.closed.mayNot} <b>{title}</b> {shell.closed.in(tenant)}
          </h1>
          <p>
            {shell.closed.needs} <code>{need.permission}</code>
            {need.isPlatform ? shell.closed.ofPlatform : '.'} <Has />
          </p>
          <p>{need.isPlatform ? shell.closed.platformGives : shell.closed.tenantGives}</p>
          <div className={styles.acts}>
            {requestId === undefined ? null : (
              <Button tone="primary" onPress={() => copy(requestId)}>
                <Icon name="copy" />
                {copied ? common.copied : shell.closed.copyId}
              </Button>
            )}
            <LinkButton href={router.buildLocation({ to: '/explain', search: ownQuestion(me) }).href}>
              {shell.closed.explain}
            </LinkButton>
            <Button tone="quiet" onPress={onAskAgain}>
              {common.tryAgain}
            </Button>
          </div>
        </div>
      </section>
      <section aria-busy={refusal === undefined}>
        <SectionHead title={shell.closed.answered} />
        {refusal === undefined ? (
          <Skeleton width={3} />
        ) : (
          <Facts
            facts={[
              { name: shell.closed.request, value: <code>{need.request}</code> },
              { name: shell.closed.answer, value: sentenceOf(refusal) },
              {
                name: shell.closed.requestId,
                value:
                  requestId === undefined ? null : (
                    <span className={styles.whole}>
                      <Id value={requestId} shown={requestId} />
                    </span>
                  ),
              },
              { name: shell.closed.time, value: <Moment time={new Date(refusedAtMs).toISOString()} /> },
            ]}
          />
        )}
      </section>
    </div>
  );
}

function ownQuestion({ type, id }: ReturnType<typeof useMe>) {
  return type === 'user' ? { user: id } : { key: id };
}

const SHOWN = 6;

/** The permissions of the caller's roles, up to the length of a sentence. */
function Has() {
  const { roles, permissions } = useMe();
  const shown = permissions.slice(0, SHOWN);
  if (roles.length === 0) return shell.closed.noRole;
  return (
    <>
      {shell.closed.yourRoles(roles.length)}{' '}
      {roles.map((role, i) => (
        <span key={role}>
          {joint(i, roles.length)}
          <b>{role}</b>
        </span>
      ))}{' '}
      {shell.closed.gives(roles.length)}{' '}
      {shown.map((permission, i) => (
        <span key={permission}>
          {joint(i, permissions.length)}
          <code>{permission}</code>
        </span>
      ))}
      {permissions.length > SHOWN
        ? shell.closed.andMore(permissions.length - SHOWN)
        : permissions.length === 0
          ? shell.closed.nothing
          : null}
      .
    </>
  );
}

/** The separator before one of several names. */
function joint(index: number, count: number): string {
  if (index === 0) return '';
  return index === count - 1 ? shell.closed.and : ', ';
}
