/** The requests that a change would newly deny and newly allow, before it is saved. */

import { Link } from '@tanstack/react-router';
import { useId, useState } from 'react';
import type { Difference, DifferenceBox } from '../../../../client/index.ts';
import { common } from '../../text/en/common.ts';
import { difference as text } from '../../text/en/difference.ts';
import { Button } from '../../ui/button.tsx';
import { classes } from '../../ui/classes.ts';
import { Hidden, Note, Skeleton, Small } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { sentenceOf } from '../../ui/problem.tsx';
import { WeekPicture } from '../policy/week-picture.tsx';
import styles from './difference.module.css';
import { type BoxChange, boxPieces, clocksOf } from './sentence.ts';
import type { DifferenceState } from './use-difference.ts';

const ID = 'difference';

interface DifferenceProps {
  readonly state: DifferenceState;
  /** A policy for all tenants changes requests of other tenants as well. */
  readonly isGlobal?: boolean;
}

/** The part of an editor above its save bar. */
export function DifferenceSection({ state, isGlobal = false }: DifferenceProps) {
  return (
    <section id={ID} tabIndex={-1} className={styles.section}>
      <SectionHead title={text.title} />
      <Body state={state} isGlobal={isGlobal} shown={6} />
    </section>
  );
}

/** The same in a dialog that deletes. */
export function DifferenceOfDelete({ state, isGlobal = false }: DifferenceProps) {
  return (
    <div className={styles.section} aria-live="polite">
      <h3>{text.titleDeleted}</h3>
      <Body state={state} isGlobal={isGlobal} shown={3} />
    </div>
  );
}

/** In the save bar: the difference in a few words, which leads to all of it. */
export function DifferenceLine({ state }: Pick<DifferenceProps, 'state'>) {
  const says = lineOf(state);
  return (
    <>
      <span className={styles.bar} role="status">
        {says}
      </span>
      {state.kind === 'known' && !isUnchanged(state.difference) ? (
        <Button small tone="quiet" onPress={show}>
          {text.see}
        </Button>
      ) : null}
    </>
  );
}

function show(): void {
  const section = document.getElementById(ID);
  section?.focus({ preventScroll: true });
  section?.scrollIntoView({ block: 'start' });
}

function lineOf(state: DifferenceState): string | undefined {
  switch (state.kind) {
    case 'nothing':
    case 'fault':
      return undefined;
    case 'denied':
    case 'failed':
      return text.barFailed;
    case 'computing':
      return text.barComputing;
    case 'known': {
      const { complete, affected } = state.difference;
      if (isUnchanged(state.difference)) return text.barUnchanged;
      const touches = text.barTouches(affected.users, affected.keys);
      return complete ? touches : `${touches} ${text.barIncomplete}`;
    }
    default:
      return state satisfies never;
  }
}

function Body({ state, isGlobal, shown }: Required<DifferenceProps> & { readonly shown: number }) {
  switch (state.kind) {
    case 'nothing':
      return <p className={styles.says}>{text.nothing}</p>;
    case 'fault':
      return <p className={styles.says}>{text.notYet(state.fault)}</p>;
    case 'denied':
      return <p className={styles.says}>{text.denied(state.reason)}</p>;
    case 'computing':
      return (
        <>
          <Small>{text.computing}</Small>
          <Skeleton width={3} />
        </>
      );
    case 'failed':
      return (
        <Note
          tone="care"
          action={
            <Button small onPress={state.retry}>
              {common.tryAgain}
            </Button>
          }
        >
          {text.failed}
          <Small>{sentenceOf(state.error)}</Small>
        </Note>
      );
    case 'known':
      return <Known difference={state.difference} isGlobal={isGlobal} shown={shown} />;
    default:
      return state satisfies never;
  }
}

interface KnownProps {
  readonly difference: Difference;
  readonly isGlobal: boolean;
  readonly shown: number;
}

function Known({ difference, isGlobal, shown }: KnownProps) {
  const { newly_denied: denied, newly_allowed: allowed, management, ...known } = difference;
  const { complete, reason, affected, recent } = known;
  return (
    <>
      {complete ? null : (
        <Note tone="care">
          <b>{text.incomplete}</b> {reason}
        </Note>
      )}
      {isUnchanged(difference) ? (
        <p className={styles.says}>{text.unchanged}</p>
      ) : (
        <p className={styles.says}>
          <b>{text.touched(affected.users, affected.keys)}</b> {denied.length === 0 ? null : fallOf(denied)}
        </p>
      )}
      <Boxes title={text.lists.requests.denied} boxes={denied} change="denied" shown={shown} />
      <Boxes title={text.lists.requests.allowed} boxes={allowed} change="allowed" shown={shown} />
      <Boxes title={text.lists.management.denied} boxes={management.newly_denied} change="denied" shown={shown} />
      <Boxes title={text.lists.management.allowed} boxes={management.newly_allowed} change="allowed" shown={shown} />
      {recent.checked === 0 ? null : <Small>{text.recorded(recent.checked, recent.changed, recent.sampled)}</Small>}
      {isGlobal ? <Small>{text.ofTenant}</Small> : null}
    </>
  );
}

/** Neither requests of the platform nor of the management API change their outcome. */
function isUnchanged({ unchanged, management }: Difference): boolean {
  return unchanged && management.unchanged;
}

/** The metered requests of several boxes overlap, so their sum is a bound. */
function fallOf(boxes: readonly DifferenceBox[]): string {
  let sum = 0;
  for (const { recent_requests: requests } of boxes) {
    if (requests === null) return text.fallUnknown;
    sum += requests;
  }
  return text.fall(sum, boxes.length > 1 || boxes.some(isBound));
}

/** Usage has no addresses and hours, so the number of a box that has them is a bound. */
function isBound(box: DifferenceBox): boolean {
  return box.addresses !== undefined || clocksOf(box).length > 0;
}

interface BoxesProps {
  readonly title: string;
  readonly boxes: readonly DifferenceBox[];
  readonly change: BoxChange;
  readonly shown: number;
}

function Boxes({ title, boxes, change, shown }: BoxesProps) {
  const head = useId();
  const [isWhole, setWhole] = useState(false);
  if (boxes.length === 0) return null;
  const left = isWhole ? 0 : Math.max(0, boxes.length - shown);
  return (
    <div>
      <h3 id={head} className={styles[change]}>
        {title}
      </h3>
      <ul aria-labelledby={head}>
        {boxes.slice(0, boxes.length - left).map((box, index) => (
          <BoxEntry key={JSON.stringify(box)} box={box} change={change} isFirst={index === 0} />
        ))}
      </ul>
      {left === 0 ? null : (
        <Button small onPress={() => setWhole(true)}>
          {text.more(left)}
        </Button>
      )}
    </div>
  );
}

interface BoxEntryProps {
  readonly box: DifferenceBox;
  readonly change: BoxChange;
  readonly isFirst: boolean;
}

function BoxEntry({ box, change, isFirst }: BoxEntryProps) {
  const { principals, by, witness, recent_requests: requests } = box;
  return (
    <li className={styles.box}>
      <p>
        {boxPieces(box, change).map(({ kind, text: said }, index) => {
          const key = `${index} ${said}`;
          if (kind === 'strong') return <b key={key}>{said}</b>;
          return (
            <span key={key} className={classes(kind === 'effect' && styles[change])}>
              {said}
            </span>
          );
        })}
      </p>
      <p className={styles.more}>
        <span>{text.usersAndKeys(principals.users, principals.keys)}</span>
        {change === 'allowed' || requests === null ? null : <span>{text.requests(requests, isBound(box))}</span>}
        <span>{text.by(by)}</span>
        <Example witness={witness} />
      </p>
      {clocksOf(box).map(({ timezone, week }, index) => (
        <WeekOf
          key={timezone}
          timezone={timezone}
          windows={week}
          isDenied={change === 'denied'}
          isFirst={isFirst && index === 0}
        />
      ))}
    </li>
  );
}

/** A request of the management API has no route to explain. */
function Example({ witness }: Pick<DifferenceBox, 'witness'>) {
  const { subject, method, path, model, body, client_ip: address, time } = witness;
  if (method === null || path === null) return null;
  return (
    <Link
      to="/explain"
      search={{
        ...(subject.startsWith('key_') ? { key: subject } : { user: subject }),
        method,
        path,
        model: model ?? undefined,
        body: body ?? undefined,
        address: address ?? undefined,
        time,
      }}
      // The draft stays where it is.
      target="_blank"
    >
      {text.explain}
      <Hidden> {text.newTab}</Hidden>
    </Link>
  );
}

interface WeekOfProps {
  readonly timezone: string;
  readonly windows: readonly string[];
  readonly isDenied: boolean;
  readonly isFirst: boolean;
}

/** Only the first week is open, because a change may have 200 boxes. */
function WeekOf({ timezone, windows, isDenied, isFirst }: WeekOfProps) {
  const [isOpen, setOpen] = useState(isFirst);
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{text.week(timezone)}</summary>
      {isOpen ? <WeekPicture windows={windows} isDenied={isDenied} /> : null}
    </details>
  );
}
