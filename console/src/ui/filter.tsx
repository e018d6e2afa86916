/** A filter of a list: a button that opens what there is to choose. What is chosen stands beside it as a chip. */

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
