/** The frame of every screen after the sign-in: rail, bar, content. */

import { Outlet, useNavigate, useRouter } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { Button, Dialog, Modal, ModalOverlay } from 'react-aria-components';
import { onSessionEnd } from '../api/client.ts';
import { restoreDrafts } from '../api/drafts.ts';
import { keepTenant } from '../api/last-tenant.ts';
import { TenantProvider, useMe, useTenantOfAddress } from '../api/session.ts';
import { shell } from '../text/en/shell.ts';
import { Icon } from '../ui/icon.tsx';
import overlay from '../ui/overlay.module.css';
import { AccountMenu } from './account-menu.tsx';
import { Guard } from './guard.tsx';
import { LeaveGuard } from './leave.tsx';
import { Nav } from './nav.tsx';
import { PaletteButton } from './palette-button.tsx';
import styles from './shell.module.css';
import { KnownTenant, TenantNotes } from './tenant-notes.tsx';
import { TenantSwitcher } from './tenant-switcher.tsx';
import { ThemeMenu } from './theme-menu.tsx';

export function Shell() {
  const tenant = useTenantOfAddress();
  const { id: user } = useMe();
  // Before the first form opens.
  useState(() => restoreDrafts(user));
  useSignInWhenOver();
  useKeptTenant(tenant.id);
  return (
    <TenantProvider value={tenant}>
      <LeaveGuard>
        <a className={styles.skip} href="#content">
          {shell.skip}
        </a>
        <div className={styles.frame}>
          <aside className={styles.rail}>
            <Nav />
            <AccountMenu />
          </aside>
          <div>
            <header className={styles.top}>
              <PhoneMenu />
              <TenantSwitcher />
              <PaletteButton />
              <ThemeMenu />
            </header>
            <TenantNotes />
            <main id="content" tabIndex={-1}>
              <KnownTenant>
                <Guard>
                  <Outlet />
                </Guard>
              </KnownTenant>
            </main>
          </div>
        </div>
      </LeaveGuard>
    </TenantProvider>
  );
}

/** Opens the sign-in page when the session ends elsewhere, and returns to the same page afterwards. */
function useSignInWhenOver(): void {
  const navigate = useNavigate();
  const router = useRouter();
  useEffect(
    () =>
      onSessionEnd(({ reason }) => {
        const search = { next: router.state.location.href, over: reason };
        void navigate({ to: '/sign-in', search, ignoreBlocker: true });
      }),
    [navigate, router],
  );
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
