/** A trial beside another gate: the requests that Postern would have denied, and those that the two gates decided differently. */

import { useNavigate, useSearch } from '@tanstack/react-router';
import type { RecentDecision, Trial } from '../../../../client/index.ts';
import { Principal, shownPrincipal, useName } from '../../api/principal.tsx';
import { trial as text } from '../../text/en/trial.ts';
import { Button } from '../../ui/button.tsx';
import { Chip } from '../../ui/chip.tsx';
import { Code } from '../../ui/code.tsx';
import { Segments } from '../../ui/field.tsx';
import { type ListColumn, ListTable, TwoLines } from '../../ui/list.tsx';
import { ListEmpty } from '../../ui/list-empty.tsx';
import { Empty, Note, Skeleton, State } from '../../ui/mark.tsx';
import { count } from '../../ui/number.ts';
import { Page, SectionHead, Sentence, Tools } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Ago } from '../../ui/time.tsx';
import { reasonOf } from '../overview/reasons.tsx';
import { ByPrincipal, ByReason } from './denied.tsx';
import { useRequests, useTrial } from './queries.ts';
import { RequestDrawer } from './request-drawer.tsx';
import { TRIAL_KINDS, type TrialSearch } from './search.ts';
import styles from './trial.module.css';

export type ShowTrial = (change: Partial<TrialSearch>) => void;

export function TrialScreen() {
  const search = useSearch({ from: '/inside/trial' });
  const navigate = useNavigate({ from: '/trial' });
  const trial = useTrial(search.span);
  const show: ShowTrial = (change) =>
    void navigate({ search: (before) => ({ ...before, open: undefined, ...change }), resetScroll: false });
  return (
    <Page
      title={text.title}
      says={text.says}
      actions={
        <Segments
          label={text.span}
          value={search.span ?? 'day'}
          onChange={(span) => show({ span: span === 'hour' ? span : undefined })}
          options={(['hour', 'day'] as const).map((value) => ({ value, label: text.spans[value] }))}
        />
      }
    >
      {trial.isError ? <Problem error={trial.error} onRetry={() => void trial.refetch()} /> : null}
      {trial.data === undefined ? (
        trial.isError ? null : (
          <Skeleton width={3} />
        )
      ) : isEmpty(trial.data) ? (
        <Begin span={search.span} onShowDay={() => show({ span: undefined })} />
      ) : (
        <Results trial={trial.data} search={search} onShow={show} />
      )}
    </Page>
  );
}

function isEmpty({ total, recorded }: Trial): boolean {
  return total.allow + total.deny + total.fault + recorded.allow + recorded.deny === 0;
}

function Begin({ span, onShowDay }: { readonly span: TrialSearch['span']; readonly onShowDay: () => void }) {
  if (span !== undefined) {
    return (
      <Empty title={text.nothingLately} action={<Button onPress={onShowDay}>{text.showDay}</Button>}>
        {text.emptySays}
      </Empty>
    );
  }
  return (
    <Empty
      title={text.nothing}
      action={
        <>
          <div className={styles.command}>
            <Code title={text.command} code="postern envoy config --shadow --profile production" />
          </div>
          <p>{text.guide}</p>
        </>
      }
    >
      {text.nothingSays}
    </Empty>
  );
}

interface ResultsProps {
  readonly trial: Trial;
  readonly search: TrialSearch;
  readonly onShow: ShowTrial;
}

function Results({ trial, search, onShow }: ResultsProps) {
  return (
    <div className={styles.trial}>
      <Summary trial={trial} span={search.span ?? 'day'} />
      <div className={styles.notes}>
        {trial.not_recorded === 0 ? null : <Note tone="care">{text.sampled(count(trial.not_recorded))}</Note>}
        {trial.other_gate_reported_at === null ? <Note tone="care">{text.noReport}</Note> : null}
      </div>
      <div className={styles.two}>
        <section>
          <SectionHead title={text.reasons} />
          <ByReason rows={trial.denied_by_code} search={search} onShow={onShow} />
        </section>
        <section>
          <SectionHead title={text.principals} />
          <ByPrincipal rows={trial.denied_by_principal} search={search} onShow={onShow} />
        </section>
      </div>
      <Requests search={search} onShow={onShow} reportedAt={trial.other_gate_reported_at} />
    </div>
  );
}

function Summary({ trial, span }: { readonly trial: Trial; readonly span: 'hour' | 'day' }) {
  const { total, differences } = trial;
  const all = total.allow + total.deny + total.fault;
  const differing = differences.denied_here + differences.denied_there;
  return (
    <div className={styles.sentence}>
      <Sentence>
        <b>{count(all)}</b> {text.requests(all)} {text.lately[span]}: <b className={styles.yes}>{count(total.allow)}</b>{' '}
        {text.wouldAllow}, <b className={styles.no}>{count(total.deny)}</b> {text.wouldDeny}.{' '}
        {total.fault === 0 ? null : `${text.faults(count(total.fault))} `}
        {differing === 0 ? (
          text.agree
        ) : (
          <>
            <b>{count(differing)}</b> {text.differ(differing)} {text.byOther}.
          </>
        )}
      </Sentence>
    </div>
  );
}

const COLUMNS: readonly ListColumn<RecentDecision>[] = [
  {
    id: 'request',
    title: text.request,
    cell: (row) => <TwoLines name={<code>{requestOf(row)}</code>} second={row.resources.slice(0, 2).join(' ')} />,
  },
  {
    id: 'outcome',
    title: text.outcome,
    cell: (row) => (
      <TwoLines
        name={<State tone={row.outcome === 'deny' ? 'deny' : 'good'}>{text.outcomes[row.outcome]}</State>}
        second={row.outcome === 'deny' ? reasonOf(row.code) : undefined}
      />
    ),
  },
  {
    id: 'other',
    title: text.other,
    cell: (row) => <OtherGate other={row.other} />,
    isLabeled: true,
  },
  {
    id: 'principal',
    title: text.principal,
    cell: ({ principal }) => (principal === null ? text.noPrincipal : <Principal {...principal} />),
  },
  { id: 'time', title: text.time, cell: (row) => <Ago time={row.time} /> },
];

/** `POST /v1/chat/completions` */
export function requestOf({ method, path }: Pick<RecentDecision, 'method' | 'path'>): string {
  return method === null ? text.unreadable : `${method} ${path ?? ''}`;
}

const OTHER_TONES = { allow: 'good', deny: 'deny' } as const;

export function OtherGate({ other }: Pick<RecentDecision, 'other'>) {
  return other === null ? (
    <State tone="off">{text.others.unknown}</State>
  ) : (
    <State tone={OTHER_TONES[other]}>{text.others[other]}</State>
  );
}

interface RequestsProps extends Omit<ResultsProps, 'trial'> {
  readonly reportedAt: string | null;
}

function Requests({ search, onShow, reportedAt }: RequestsProps) {
  const list = useRequests(search);
  const { kind = 'differs', code, principal, route, open } = search;
  const listed = list.kind === 'loaded' ? list.rows.find((row) => row.request_id === open) : undefined;
  const isFiltered = [code, principal, route].some((value) => value !== undefined) || kind !== 'all';
  return (
    <section aria-label={text.list}>
      <SectionHead
        title={text.list}
        small={
          reportedAt === null ? undefined : (
            <>
              {text.reported} <Ago time={reportedAt} />
            </>
          )
        }
      />
      <Tools>
        <Segments
          label={text.kind}
          value={kind}
          onChange={(value) => onShow({ kind: value === 'differs' ? undefined : value })}
          options={TRIAL_KINDS.map((value) => ({ value, label: text.kinds[value] }))}
        />
        {code === undefined ? null : (
          <Chip label={text.clear(text.filterOf.code)} onRemove={() => onShow({ code: undefined })}>
            {reasonOf(code)}
          </Chip>
        )}
        {principal === undefined ? null : (
          <PrincipalChip id={principal} onRemove={() => onShow({ principal: undefined })} />
        )}
        {route === undefined ? null : (
          <Chip label={text.clear(text.filterOf.route)} onRemove={() => onShow({ route: undefined })}>
            {route}
          </Chip>
        )}
      </Tools>
      <ListTable
        label={text.list}
        list={list}
        idOf={(row: RecentDecision) => row.request_id}
        onOpen={(row) => onShow({ open: row.request_id })}
        empty={
          <ListEmpty
            texts={text}
            onShowAll={
              isFiltered
                ? () => onShow({ kind: 'all', code: undefined, principal: undefined, route: undefined })
                : undefined
            }
          />
        }
        columns={COLUMNS}
      />
      {open === undefined || list.kind === 'loading' ? null : (
        <RequestDrawer key={open} requestId={open} listed={listed} onShow={onShow} />
      )}
    </section>
  );
}

function PrincipalChip({ id, onRemove }: { readonly id: string; readonly onRemove: () => void }) {
  const name = useName(id.startsWith('usr_') ? 'user' : 'api_key', id) ?? shownPrincipal(id);
  return (
    <Chip label={text.clear(text.filterOf.principal)} onRemove={onRemove}>
      {name}
    </Chip>
  );
}
