/** "If you save this": what the policy would change for given requests and recent decisions, per user and key. */

import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { NewPolicy } from '../../../../client/index.ts';
import { Principal } from '../../api/principal.tsx';
import { useDenied, useTenant } from '../../api/session.ts';
import { simulation as text } from '../../text/en/policies.ts';
import { Button } from '../../ui/button.tsx';
import { classes } from '../../ui/classes.ts';
import { Entry } from '../../ui/courses.tsx';
import { Checkbox } from '../../ui/field.tsx';
import { Icon } from '../../ui/icon.tsx';
import { Note, Small } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Moment } from '../../ui/time.tsx';
import { NewSample } from './new-sample.tsx';
import styles from './policy.module.css';
import { MAX_TRIED, type Recent, recentSamples, type Sample } from './samples.ts';
import { type Change, type Group, groupsOf, type SimulationResult, simulate } from './simulate.ts';

interface SimulationProps {
  readonly proposal: NewPolicy;
  /** Why the policy cannot be simulated, such as a missing action. */
  readonly fault: string | undefined;
}

interface Outcome extends SimulationResult {
  readonly recent: Recent | undefined;
  readonly samples: readonly Sample[];
  /** The simulated proposal, to detect a later edit. */
  readonly asked: string;
}

export function Simulation({ proposal, fault }: SimulationProps) {
  const tenant = useTenant();
  const denied = useDenied('admin:policies');
  const [given, setGiven] = useState<readonly Sample[]>([]);
  const [withRecent, setWithRecent] = useState(true);
  const asked = JSON.stringify([proposal, given, withRecent]);
  const run = useMutation({
    mutationFn: async (): Promise<Outcome> => {
      const recent = withRecent ? await recentSamples(tenant) : undefined;
      const samples = [...given, ...(recent?.kind === 'read' ? recent.samples : [])];
      return { ...(await simulate(tenant, proposal, samples)), recent, samples, asked };
    },
  });
  const outcome = run.data;
  const reason = denied ?? fault ?? (given.length === 0 && !withRecent ? text.needsRequest : undefined);
  return (
    <section>
      <SectionHead title={text.title} small={outcome === undefined ? undefined : scopeOf(outcome)} />
      <div className={styles.stack}>
        {outcome === undefined ? <p className={styles.says}>{text.says}</p> : <Result outcome={outcome} />}
        {outcome !== undefined && outcome.asked !== asked ? <Small>{text.stale}</Small> : null}
        {run.isError ? <Problem error={run.error} /> : null}
        <div>
          <Checkbox isSelected={withRecent} onChange={setWithRecent}>
            {text.withRecent}
          </Checkbox>
          <Small>{outcome?.recent?.kind === 'refused' ? text.deniedRecent : text.recentSays(MAX_TRIED)}</Small>
        </div>
        <Given samples={given} onChange={setGiven} />
        <div>
          <Button onPress={() => run.mutate()} isPending={run.isPending} disabledReason={reason}>
            {outcome === undefined ? text.run : text.again}
          </Button>
        </div>
      </div>
    </section>
  );
}

/** The number of simulated decisions, and of how many. */
function scopeOf({ samples, recent }: Outcome): string {
  const count = (source: Sample['source']): number => samples.filter((sample) => sample.source === source).length;
  const recorded = recent?.kind === 'read' ? recent.recorded : { deny: 0, allow: 0 };
  return text.over([
    text.given(count('given')),
    text.recentDenials(count('deny'), recorded.deny),
    text.recentAllows(count('allow'), recorded.allow),
  ]);
}

const NUMBERS: readonly {
  readonly change: Change;
  readonly label: string;
  readonly look: 'deny' | 'allow' | 'muted';
}[] = [
  { change: 'newly_denied', label: text.newlyDenied, look: 'deny' },
  { change: 'newly_allowed', label: text.newlyAllowed, look: 'allow' },
  { change: 'as_before', label: text.asBefore, look: 'muted' },
];

function Result({ outcome: { simulated, failed } }: { readonly outcome: Outcome }) {
  const groups = groupsOf(simulated).filter(({ change }) => change !== 'as_before');
  return (
    <div role="status">
      <dl className={styles.numbers}>
        {NUMBERS.map(({ change, label, look }) => (
          <div key={change}>
            <dd className={classes(styles.number, styles[look])}>
              {simulated.filter((result) => result.change === change).length}
            </dd>
            <dt>
              <Small>{label}</Small>
            </dt>
          </div>
        ))}
      </dl>
      {groups.length === 0 ? <p className={styles.says}>{text.nothingChanges}</p> : null}
      <ul>
        {groups.map((group) => (
          <ChangedEntry key={`${group.change} ${group.principal.id}`} group={group} />
        ))}
      </ul>
      {failed === 0 ? null : <Note tone="care">{text.failed(failed)}</Note>}
    </div>
  );
}

function ChangedEntry({ group: { principal, change, results } }: { readonly group: Group }) {
  const first = results[0];
  const request = first?.sample.request;
  const isDenied = change === 'newly_denied';
  return (
    <Entry
      icon={
        <span className={isDenied ? styles.deny : styles.allow}>
          <Icon name={isDenied ? 'close' : 'check'} />
        </span>
      }
      name={<Principal type={principal.type} id={principal.id} />}
      second={
        <>
          {results.length > 1 ? `${text.requests(results.length)}, ` : null}
          {request?.method} {request?.path} {request?.time === undefined ? text.now : <Moment time={request.time} />}
          {typeof request?.client_ip === 'string' ? ` ${text.from(request.client_ip)}` : null}
          {isDenied && first?.policy !== null && first?.policy !== undefined ? ` ${text.byPolicy(first.policy)}` : null}
        </>
      }
      end={<span className={styles.end}>{isDenied ? text.deniedNow : text.allowedNow}</span>}
    />
  );
}

interface GivenProps {
  readonly samples: readonly Sample[];
  readonly onChange: (samples: readonly Sample[]) => void;
}

function Given({ samples, onChange }: GivenProps) {
  const [isAdding, setAdding] = useState(false);
  return (
    <div>
      <SectionHead title={text.requestsOf} />
      <ul>
        {samples.map((sample) => (
          <Entry
            key={sample.id}
            name={<Principal type={sample.principal.type} id={sample.principal.id} />}
            second={
              <>
                {sample.request.method} {sample.request.path} {sample.request.client_ip}{' '}
                {sample.request.time === undefined ? text.now : <Moment time={sample.request.time} />}
              </>
            }
            end={
              <Button
                tone="quiet"
                small
                square
                label={text.removeRequest(sample.principal.id)}
                onPress={() => onChange(samples.filter((other) => other !== sample))}
              >
                <Icon name="close" size={12} />
              </Button>
            }
          />
        ))}
      </ul>
      {isAdding ? (
        <NewSample
          onAdd={(sample) => {
            onChange([...samples, sample]);
            setAdding(false);
          }}
          onCancel={() => setAdding(false)}
        />
      ) : (
        <Button small onPress={() => setAdding(true)}>
          <Icon name="plus" size={12} />
          {text.add}
        </Button>
      )}
    </div>
  );
}
