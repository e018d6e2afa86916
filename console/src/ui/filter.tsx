/** A filter of a list: a button that opens the choices, and a chip for each chosen one. */

import type { ReactNode } from 'react';
import { Button, Dialog, DialogTrigger, Popover } from 'react-aria-components';
import buttonStyles from './button.module.css';
import styles from './filter.module.css';
import { Icon } from './icon.tsx';

interface FilterProps {
  readonly label: string;
  /** The heading of what opens, read out. */
  readonly title: string;
  readonly children: (close: () => void) => ReactNode;
}

export function Filter({ label, title, children }: FilterProps) {
  return (
    <DialogTrigger>
      <Button className={buttonStyles.button}>
        {label}
        <Icon name="down" />
      </Button>
      <Popover placement="bottom start">
        <Dialog aria-label={title} className={styles.chooser}>
          {({ close }) => children(close)}
        </Dialog>
      </Popover>
    </DialogTrigger>
  );
}
