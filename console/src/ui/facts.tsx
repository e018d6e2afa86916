import type { ReactNode } from 'react';
import { classes } from './classes.ts';
import styles from './facts.module.css';

export interface Fact {
  readonly name: string;
  /** Null: the fact is left out. */
  readonly value: ReactNode;
}

interface FactsProps {
  readonly facts: readonly Fact[];
  /** The names take the width, and the values are short. */
  readonly isNamesFirst?: boolean;
}

/** Names and values, one under the other. */
export function Facts({ facts, isNamesFirst = false }: FactsProps) {
  return (
    <dl className={classes(styles.facts, isNamesFirst && styles.names)}>
      {facts
        .filter(({ value }) => value !== null && value !== undefined)
        .map(({ name, value }) => (
          <FactRow key={name} name={name} value={value} />
        ))}
    </dl>
  );
}

function FactRow({ name, value }: Fact) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}
