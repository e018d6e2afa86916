/** An amount of each day. Every number of it is in the table that opens beneath. */

import type { UseQueryResult } from '@tanstack/react-query';
import { scaleBand, scaleLinear } from 'd3-scale';
import { useState } from 'react';
import type { UsageRow } from '../../../../client/index.ts';
import { usage as text } from '../../text/en/usage.ts';
import { arch } from '../../ui/arch.ts';
import { Segments } from '../../ui/field.tsx';
import { compact, count } from '../../ui/number.ts';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { useWidth } from '../../ui/use-width.ts';
import { type Days, daysOf } from './month.ts';
import type { DailyUsage } from './queries.ts';
import styles from './usage.module.css';

const HEIGHT = 132;
const TOP = 8;
const AXIS = 24;
/** Pixels at the left for the labels of the axis. */
const LEFT = { whole: 44, money: 68 } as const;
const FIRST_WIDTH = 760;
const WIDEST_BAR = 56;
/** Pixels that the label of a day needs. */
const LABEL = 28;
const LONGEST_MONTH = 31;

/** An amount that the chart can draw. */
export interface Measure {
  readonly id: string;
  readonly label: string;
  /** The heading of the chart. */
  readonly title: string;
  /** The chart in words. */
  readonly says: string;
  readonly of: (row: UsageRow) => number;
  readonly say: (amount: number) => string;
  /** The label of the axis. */
  readonly tick: (amount: number) => string;
  /** False: money. */
  readonly isWhole: boolean;
}

interface DaysProps {
  readonly days: Days;
  readonly usage: UseQueryResult<DailyUsage>;
  /** The first is drawn at first. */
  readonly measures: readonly [Measure, ...Measure[]];
  /** The columns of the table after the day. */
  readonly columns: NumbersProps['columns'];
}

const counted = (id: keyof typeof text.measures): Measure => ({
  id,
  label: text.measures[id],
  title: text.perDay[id],
  says: text.chartSays[id],
  of: (row) => row[id],
  say: count,
  tick: compact,
  isWhole: true,
});

/** Tokens or requests. */
export const COUNTED: Pick<DaysProps, 'measures' | 'columns'> = {
  measures: [counted('total_tokens'), counted('requests')],
  columns: [
    { title: text.requests, cell: ({ requests }) => count(requests) },
    { title: text.total, cell: ({ total_tokens: tokens }) => count(tokens) },
  ],
};

export function DaysChart({ days, usage, measures, columns }: DaysProps) {
  const [chosen, setChosen] = useState(measures[0].id);
  const measure = measures.find(({ id }) => id === chosen) ?? measures[0];
  const { data } = usage;
  return (
    <section className={styles.days}>
      <div className={styles.head}>
        <SectionHead title={measure.title} />
        {measures.length === 1 ? null : (
          <Segments
            label={text.measure}
            value={measure.id}
            onChange={setChosen}
            options={measures.map(({ id, label }) => ({ value: id, label }))}
          />
        )}
      </div>
      {usage.isError ? <Problem error={usage.error} onRetry={() => void usage.refetch()} /> : null}
      {data === undefined ? (
        <div className={styles.wait} aria-busy={usage.isPending} />
      ) : (
        <Drawn rows={data.rows} days={daysOf(days)} measure={measure} columns={columns} />
      )}
    </section>
  );
}

interface NumbersProps {
  readonly rows: readonly UsageRow[];
  readonly columns: readonly { readonly title: string; readonly cell: (row: UsageRow) => string }[];
}

/** The chart with its numbers. Without usage, a sentence says more than empty axes. */
function Drawn({ rows, days, measure, columns }: ChartProps & NumbersProps) {
  if (rows.length === 0) return <p className={styles.numbers}>{text.numbersNone}</p>;
  return (
    <>
      <Chart rows={rows} days={days} measure={measure} />
      <Numbers rows={rows} columns={columns} />
    </>
  );
}

function Numbers({ rows, columns }: NumbersProps) {
  return (
    <details className={styles.numbers}>
      <summary>{text.numbers}</summary>
      <table>
        <thead>
          <tr>
            <th scope="col">{text.groups.day}</th>
            {columns.map(({ title }) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.toReversed().map((row) => (
            <tr key={row.day}>
              <th scope="row">{row.day}</th>
              {columns.map(({ title, cell }) => (
                <td key={title}>{cell(row)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

interface ChartProps {
  readonly rows: readonly UsageRow[];
  readonly days: readonly string[];
  readonly measure: Measure;
}

function Chart({ rows, days, measure: { of, say, tick: sayTick, says, isWhole } }: ChartProps) {
  const left = isWhole ? LEFT.whole : LEFT.money;
  const { ref, width } = useWidth(FIRST_WIDTH);
  const byDay = new Map(rows.map((row) => [row.day, of(row)]));
  const up = scaleLinear()
    .domain([0, Math.max(0, ...byDay.values()) || 1])
    .nice(3)
    .range([0, HEIGHT]);
  const x = scaleBand<string>().domain(days).range([left, width]).paddingInner(0.3).paddingOuter(0.15);
  const bar = Math.min(WIDEST_BAR, x.bandwidth());
  const sill = TOP + HEIGHT;
  const isLong = days.length > LONGEST_MONTH;
  const every = Math.ceil((isLong ? 2 * LABEL : LABEL) / Math.max(1, x.step()));
  return (
    <figure className={styles.figure} ref={ref}>
      <svg width={width} height={sill + AXIS} role="img" aria-label={says}>
        {up
          .ticks(3)
          .filter((tick) => !isWhole || Number.isInteger(tick))
          .map((tick) => (
            <g key={tick}>
              <line className={styles.grid} x1={left} x2={width} y1={sill - up(tick)} y2={sill - up(tick)} />
              <text className={styles.tick} x={left - 10} y={sill - up(tick) + 4} textAnchor="end">
                {sayTick(tick)}
              </text>
            </g>
          ))}
        {days.map((day, i) => {
          const value = byDay.get(day) ?? 0;
          const middle = (x(day) ?? 0) + x.bandwidth() / 2;
          return (
            <g key={day}>
              <title>{`${day}: ${say(value)}`}</title>
              {value === 0 ? null : <path className={styles.bar} d={arch(middle - bar / 2, sill, bar, up(value))} />}
              {i % every === 0 ? (
                <text className={styles.tick} x={middle} y={sill + 17} textAnchor="middle">
                  {isLong ? day.slice(5) : Number(day.slice(-2))}
                </text>
              ) : null}
            </g>
          );
        })}
        <line className={styles.sill} x1={left} x2={width} y1={sill + 0.5} y2={sill + 0.5} />
      </svg>
    </figure>
  );
}
