/** Buttons. One that its user may not press stays where it is, can be focused, and says why. */

import { type ReactNode, useId } from 'react';
import { Button as AriaButton, Link as AriaLink, Tooltip, TooltipTrigger } from 'react-aria-components';
import styles from './button.module.css';
import { classes } from './classes.ts';
import { Hidden } from './mark.tsx';

export type Tone = 'plain' | 'primary' | 'danger' | 'quiet';

interface Look {
  readonly tone?: Tone;
  readonly small?: boolean;
  /** An icon alone; then it needs a label. */
  readonly square?: boolean;
}

interface ButtonProps extends Look {
  readonly children: ReactNode;
  readonly label?: string;
  readonly type?: 'button' | 'submit';
  readonly onPress?: () => void;
  /** Why it cannot be pressed now; undefined: it can. */
  readonly disabledReason?: string | undefined;
  /** The reason stands beside the button, so no tooltip repeats it. */
  readonly isReasonShown?: boolean;
  readonly isPending?: boolean;
  readonly slot?: string;
  readonly autoFocus?: boolean;
  readonly form?: string;
}

export function Button({
  children,
  label,
  disabledReason,
  isReasonShown = false,
  onPress,
  type,
  isPending,
  slot,
  autoFocus,
  form,
  ...look
}: ButtonProps) {
  const reason = useId();
  const common = {
    className: lookOf(look),
    type: type ?? 'button',
    'aria-label': label,
    autoFocus,
    form,
    ...(slot === undefined ? {} : { slot }),
  };
  if (disabledReason !== undefined) {
    return (
      <TooltipTrigger delay={150}>
        <AriaButton {...common} type="button" aria-disabled="true" aria-describedby={reason}>
          {children}
        </AriaButton>
        <Hidden id={reason}>{disabledReason}</Hidden>
        {isReasonShown ? null : (
          <Tooltip className={styles.tip} offset={6}>
            {disabledReason}
          </Tooltip>
        )}
      </TooltipTrigger>
    );
  }
  // React Aria would announce a pending button by a reference to an element that is not there.
  const pending = isPending === true ? ({ type: 'button', 'aria-disabled': 'true' } as const) : { onPress };
  return (
    <AriaButton {...common} {...pending}>
      {children}
    </AriaButton>
  );
}

interface LinkButtonProps extends Look {
  readonly href: string;
  readonly children: ReactNode;
  /** The file's name, for a link that saves what it points at. */
  readonly download?: string;
}

/** A link that looks like a button. `href` is a path of the console, or an address made by the page itself. */
export function LinkButton({ href, children, download, ...look }: LinkButtonProps) {
  return (
    <AriaLink href={href} className={lookOf(look)} download={download}>
      {children}
    </AriaLink>
  );
}

function lookOf({ tone = 'plain', small = false, square = false }: Look): string {
  return classes(styles.button, tone !== 'plain' && styles[tone], small && styles.small, square && styles.square);
}
