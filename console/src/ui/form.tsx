/** A form whose button and whose Enter key do the same. */

import type { ReactNode } from 'react';

interface FormProps {
  readonly id?: string;
  readonly className: string | undefined;
  readonly noValidate?: boolean;
  readonly autoComplete?: 'off';
  /** Why it cannot be sent; undefined: it can. */
  readonly fault?: string | undefined;
  readonly onSend: () => void;
  readonly children: ReactNode;
}

export function Form({ fault, onSend, ...form }: FormProps) {
  return (
    <form
      {...form}
      onSubmit={(event) => {
        event.preventDefault();
        if (fault === undefined) onSend();
      }}
    />
  );
}
