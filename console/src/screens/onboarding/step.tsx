import type { ReactNode } from 'react';
import { onboarding as text } from '../../text/en/onboarding.ts';
import { State } from '../../ui/mark.tsx';
import styles from './onboarding.module.css';

interface StepProps {
  readonly title: string;
  readonly isDone: boolean;
  readonly children: ReactNode;
}

export function Step({ title, isDone, children }: StepProps) {
  return (
    <li className={styles.step}>
      <div className={styles.head}>
        <h2>{title}</h2>
        <State tone={isDone ? 'good' : 'off'}>{isDone ? text.done : text.open}</State>
      </div>
      {children}
    </li>
  );
}
