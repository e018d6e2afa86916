/** The frame of every screen after the sign-in: rail, bar, content. */

import { useQuery } from '@tanstack/react-query';
import { Outlet, useNavigate, useRouter, useSearch } from '@tanstack/react-router';
import { type ReactNode, useEffect, useState } from 'react';
import { Button, Dialog, Modal, ModalOverlay } from 'react-aria-components';
import { ProblemError, type SessionEnd } from '../../../client/index.ts';
import { onSessionEnd, wasSignedIn } from '../api/client.ts';
import { restoreDrafts, storeDrafts } from '../api/drafts.ts';
import { keepTenant } from '../api/last-tenant.ts';
import { meQuery, TenantProvider, useMe, useTenantOfAddress } from '../api/session.ts';
import { shell } from '../text/en/shell.ts';
import { Icon } from '../ui/icon.tsx';
import { Skeleton } from '../ui/mark.tsx';
import overlay from '../ui/overlay.module.css';
import page from '../ui/page.module.css';
import { Problem } from '../ui/problem.tsx';
import { AccountMenu } from './account-menu.tsx';
import { Guard } from './guard.tsx';
import { useKeptFocus } from './kept-focus.ts';
import { LeaveGuard } from './leave.tsx';
import { useMoveToTenant } from './move-to-tenant.ts';
import { Nav } from './nav.tsx';
import { PaletteButton } from './palette-button.tsx';
import styles from './shell.module.css';
import { KnownTenant, TenantNotes } from './tenant-notes.tsx';
import { TenantSwitcher } from './tenant-switcher.tsx';
import { ThemeMenu } from './theme-menu.tsx';

export function Shell() {
  const me = useQuery(meQuery);
  useSignInWhenOver();
  useSignInUnlessKnown(me.error);
  if (me.data !== undefined) return <Known />;
  return (
    <Frame>
      <div className={page.page}>
        {me.isError ? <Problem error={me.error} onRetry={() => void me.refetch()} /> : <Skeleton width={3} />}
      </div>
    </Frame>
  );
}

function Known() {
  const tenant = useTenantOfAddress();
  const { id: user } = useMe();
  useMoveToTenant(useSearch({ strict: false }).tenant ?? tenant.id);
  // Before the first form opens.
  useState(() => restoreDrafts(user));
  useKeptTenant(tenant.id);
  useKeptFocus();
  return (
    <TenantProvider value={tenant}>
      <LeaveGuard>
        <Frame
          foot={<AccountMenu />}
          top={
            <>
              <PhoneMenu />
              <TenantSwitcher />
              <PaletteButton />
            </>
          }
          notes={<TenantNotes />}
        >
          {/* Nothing of a tenant stays on the screen of another one: no rows, no selection, no open dialog. */}
          <KnownTenant key={tenant.id}>
            <Guard>
              <Outlet />
            </Guard>
          </KnownTenant>
        </Frame>
      </LeaveGuard>
    </TenantProvider>
  );
}

interface FrameProps {
  /** The parts that need to know the user. */
  readonly foot?: ReactNode;
  readonly top?: ReactNode;
  readonly notes?: ReactNode;
  readonly children: ReactNode;
}

/** It is on the screen before the server has answered, and while it does not. */
function Frame({ foot, top, notes, children }: FrameProps) {
  return (
    <>
      <a className={styles.skip} href="#content">
        {shell.skip}
      </a>
      <div className={styles.frame}>
        <aside className={styles.rail}>
          <Nav />
          {foot}
        </aside>
        <div>
          <header className={styles.top}>
            {top ?? <span className={styles.jump} />}
            <ThemeMenu />
          </header>
          {notes}
          <main id="content" tabIndex={-1} aria-busy={top === undefined}>
            {children}
          </main>
        </div>
      </div>
    </>
  );
}

/** The server knows no session of this browser. */
function useSignInUnlessKnown(error: unknown): void {
  const navigate = useNavigate();
  const router = useRouter();
  const isUnknown = error instanceof ProblemError && error.status === 401;
  useEffect(() => {
    const { href } = router.state.location;
    if (isUnknown) void navigate({ to: '/sign-in', search: href === '/' ? {} : { next: href }, ignoreBlocker: true });
  }, [isUnknown, navigate, router]);
}

/** Opens the sign-in page when the session ends elsewhere, and returns to the same page afterwards. */
function useSignInWhenOver(): void {
  const navigate = useNavigate();
  const router = useRouter();
  useEffect(() => {
    const leave = ({ reason }: SessionEnd): void => {
      const search = { next: router.state.location.href, over: reason };
      void navigate({ to: '/sign-in', search, ignoreBlocker: true });
    };
    // A sign-out in another tab. This one must not go on showing what the user could see.
    const note = (): void => {
      if (wasSignedIn()) return;
      storeDrafts();
      leave({ reason: 'refused' });
    };
    const stop = onSessionEnd(leave);
    addEventListener('storage', note);
    return () => {
      stop();
      removeEventListener('storage', note);
    };
  }, [navigate, router]);
}

/** The next sign-in of this user in this browser begins in the tenant. */
function useKeptTenant(tenant: string): void {
  const me = useMe();
  useEffect(() => {
    if (me.platform_admin) keepTenant(me, tenant);
  }, [me, tenant]);
}

function PhoneMenu() {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button className={styles.burger} aria-label={shell.menu} onPress={() => setOpen(true)}>
        <Icon name="menu" />
      </Button>
      <ModalOverlay className={overlay.scrim} isOpen={isOpen} onOpenChange={setOpen} isDismissable>
        <Modal>
          <Dialog aria-label={shell.menu} className={styles.sheet}>
            <Nav onChoose={() => setOpen(false)} />
            <AccountMenu />
          </Dialog>
        </Modal>
      </ModalOverlay>
    </>
  );
}
