/** Overlays: the drawer, which has a URL of its own, the dialog, which needs an answer, and menus. */

import type { ReactNode } from 'react';
import {
  Button as AriaButton,
  Menu as AriaMenu,
  Dialog,
  Heading,
  MenuItem,
  MenuTrigger,
  Modal,
  ModalOverlay,
  Popover,
} from 'react-aria-components';
import { common } from '../text/en/common.ts';
import buttonStyles from './button.module.css';
import { Button } from './button.tsx';
import { classes } from './classes.ts';
import { Icon } from './icon.tsx';
import styles from './overlay.module.css';

interface DrawerProps {
  readonly title: ReactNode;
  readonly onClose: () => void;
  readonly children: ReactNode;
  /** The buttons at its foot. */
  readonly foot?: ReactNode;
}

export function Drawer({ title, onClose, children, foot }: DrawerProps) {
  return (
    <ModalOverlay
      className={styles.scrim}
      isOpen
      isDismissable
      onOpenChange={(isOpen) => (isOpen ? undefined : onClose())}
    >
      <Modal className={styles.drawer}>
        <Dialog className={styles.inside}>
          <header className={styles.top}>
            <Heading slot="title">{title}</Heading>
            <Button tone="quiet" small square label={common.close} onPress={onClose}>
              <Icon name="close" />
            </Button>
          </header>
          <div className={styles.body}>{children}</div>
          <footer className={styles.foot}>{foot}</footer>
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}

interface AskProps {
  readonly title: string;
  readonly children: ReactNode;
  /** Its buttons. */
  readonly actions: ReactNode;
  /** Undefined: neither Esc nor a press outside closes it. */
  readonly onClose?: (() => void) | undefined;
}

export function Ask({ title, children, actions, onClose }: AskProps) {
  return (
    <ModalOverlay
      className={styles.scrim}
      isOpen
      isDismissable={onClose !== undefined}
      isKeyboardDismissDisabled={onClose === undefined}
      onOpenChange={(isOpen) => (isOpen ? undefined : onClose?.())}
    >
      <div className={styles.center}>
        <Modal className={styles.dialog}>
          <Dialog role="alertdialog" className={styles.said}>
            <Heading slot="title">{title}</Heading>
            {children}
            <div className={styles.acts}>{actions}</div>
          </Dialog>
        </Modal>
      </div>
    </ModalOverlay>
  );
}

export interface Choice {
  readonly id: string;
  readonly label: ReactNode;
  readonly small?: ReactNode;
  readonly isDanger?: boolean;
  /** Why it cannot be chosen now; shown beside it. */
  readonly disabledReason?: string | undefined;
  readonly onChoose: () => void;
}

interface MenuProps {
  /** Absent: what `children` say. */
  readonly label?: string;
  readonly choices: readonly Choice[];
  /** The button that opens the menu; default: three dots. */
  readonly children?: ReactNode;
  readonly className?: string | undefined;
  /** The size of the buttons beside it. Default: small and without a frame, for the row of a list. */
  readonly isFull?: boolean;
}

export function Menu({ label, choices, children, className, isFull = false }: MenuProps) {
  return (
    <MenuTrigger>
      <AriaButton
        aria-label={label}
        className={
          className ??
          classes(
            buttonStyles.button,
            !isFull && buttonStyles.quiet,
            !isFull && buttonStyles.small,
            buttonStyles.square,
          )
        }
      >
        {children ?? <Icon name="more" />}
      </AriaButton>
      <Popover placement="bottom end" offset={4}>
        <AriaMenu
          className={styles.menu}
          disabledKeys={choices.filter((choice) => choice.disabledReason !== undefined).map(({ id }) => id)}
          onAction={(id) => choices.find((choice) => choice.id === id)?.onChoose()}
        >
          {choices.map(({ id, label: name, small, isDanger, disabledReason }) => (
            <MenuItem key={id} id={id} className={classes(styles.item, isDanger && styles.danger)} textValue={id}>
              {name}
              {(disabledReason ?? small) === undefined ? null : <small>{disabledReason ?? small}</small>}
            </MenuItem>
          ))}
        </AriaMenu>
      </Popover>
    </MenuTrigger>
  );
}
