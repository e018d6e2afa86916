/** A drawer with one form. The save bar at the drawer's foot ends it. */

import { type ReactNode, useId } from 'react';
import styles from './field.module.css';
import { Form } from './form.tsx';
import { Drawer } from './overlay.tsx';
import { SaveBar, type SaveBarProps } from './save-bar.tsx';

interface DrawerFormProps<T> extends Pick<SaveBarProps<T>, 'action' | 'saved' | 'comparable'> {
  readonly title: string;
  readonly work: SaveBarProps<T>['work'] & { readonly save: () => void };
  /** Why the form cannot be sent; undefined: it can. */
  readonly fault?: string | undefined;
  readonly onClose: () => void;
  /** Other actions, beside the one that saves. */
  readonly acts?: ReactNode;
  /** The content above the form. */
  readonly above?: ReactNode;
  readonly noValidate?: boolean;
  /** The fields. */
  readonly children: ReactNode;
}

export function DrawerForm<T>(props: DrawerFormProps<T>) {
  const { title, work, fault, onClose, acts, above, noValidate = false, children, ...bar } = props;
  const id = useId();
  return (
    <Drawer
      title={title}
      onClose={onClose}
      foot={
        <SaveBar {...bar} work={work} form={id} disabledReason={fault} onClose={onClose}>
          {acts}
        </SaveBar>
      }
    >
      {above}
      <Form id={id} className={styles.drawerForm} noValidate={noValidate} fault={fault} onSend={() => work.save()}>
        {children}
      </Form>
    </Drawer>
  );
}
