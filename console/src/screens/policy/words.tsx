import { classes } from '../../ui/classes.ts';
import type { PolicyFields } from './draft.ts';
import styles from './policy.module.css';
import { summaryOf } from './summary.ts';

/** Longest name, in characters, that stays on one line. */
const MAX_UNBROKEN = 28;

/** The policy as a sentence, read out when it changes. */
export function Words({ draft, zone }: { readonly draft: PolicyFields; readonly zone: string | undefined }) {
  let at = 0;
  return (
    <p className={styles.words} aria-live="polite" aria-atomic="true">
      {summaryOf(draft, zone).map((piece) => {
        const key = `${at++} ${piece.text}`;
        if (piece.kind === 'strong') {
          return (
            <b key={key} className={classes(piece.text.length <= MAX_UNBROKEN && styles.short)}>
              {piece.text}
            </b>
          );
        }
        return (
          <span key={key} className={classes(piece.kind === 'effect' && styles[draft.effect])}>
            {piece.text}
          </span>
        );
      })}
    </p>
  );
}
