/** Counts, logs and records the gate's checks: one call per check, after its answer. */

import type { CheckMeter } from './check-meter.ts';
import { type CheckOutcome, reportedEffect, routeOf } from './check-outcome.ts';
import type { DecisionLog } from './decision-log.ts';
import type { DecisionTally } from './decision-tally.ts';
import type { RecentDecisions } from './recent-decisions.ts';
import type { TrialDecisions } from './trial-decisions.ts';

export interface CheckObserver {
  observe(outcome: CheckOutcome): void;
}

/** The records of checks in shadow mode, which count nowhere else. */
export interface ShadowRecords {
  readonly meter: CheckMeter;
  readonly tally: DecisionTally;
  readonly recent: Pick<TrialDecisions, 'offer'>;
}

export function checkObserver(
  meter: CheckMeter,
  tally: DecisionTally,
  decisions: Pick<DecisionLog, 'offer'> | undefined,
  recent: Pick<RecentDecisions, 'offer'>,
  shadow?: ShadowRecords,
): CheckObserver {
  return {
    observe: (outcome) => {
      if (outcome.shadow === true) {
        shadow?.meter.record(outcome.code, undefined, outcome.tookMs);
        shadow?.tally.count(outcome);
        decisions?.offer(outcome);
        shadow?.recent.offer(outcome);
        return;
      }
      meter.record(outcome.code, routeOf(outcome.decision), outcome.tookMs);
      if (outcome.decision?.kind === 'fault') meter.bodyNotSent(outcome.decision.route);
      else if (outcome.decision?.kind === 'deny') meter.refused(outcome.decision);
      const effect = reportedEffect(outcome.decision);
      if (effect !== undefined) meter.reported[effect]++;
      tally.count(outcome);
      decisions?.offer(outcome);
      recent.offer(outcome);
    },
  };
}
