/** Tokens or requests of each day. Every number of it is in the table that opens beneath. */

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
const LEFT = 44;
const FIRST_WIDTH = 760;
const WIDEST_BAR = 56;
/** Pixels that the label of a day needs. */
const LABEL = 28;
const LONGEST_MONTH = 31;
const MEASURES = ['total_tokens', 'requests'] as const;

export interface DaysProps {
  readonly days: Days;
  readonly usage: UseQueryResult<DailyUsage>;
}

export function DaysChart({ days, usage }: DaysProps) {
  const [measure, setMeasure] = useState<(typeof MEASURES)[number]>('total_tokens');
  const { data } = usage;
  return (
    <section className={styles.days}>
      <div className={styles.head}>
        <SectionHead title={text.perDay[measure]} />
        <Segments
          label={text.measure}
          value={measure}
          onChange={setMeasure}
          options={MEASURES.map((value) => ({ value, label: text.measures[value] }))}
        />
      </div>
      {usage.isError ? <Problem error={usage.error} onRetry={() => void usage.refetch()} /> : null}
      {data === undefined ? (
        <div className={styles.wait} aria-busy={usage.isPending} />
      ) : (
        <>
          <Chart rows={data.rows} days={daysOf(days)} of={(row) => row[measure]} label={text.chartSays[measure]} />
          <Numbers rows={data.rows} />
        </>
      )}
    </section>
  );
}

function Numbers({ rows }: { readonly rows: readonly UsageRow[] }) {
  return (
    <details className={styles.numbers}>
      <summary>{text.numbers}</summary>
      {rows.length === 0 ? (
        <p>{text.numbersNone}</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col">{text.groups.day}</th>
              <th scope="col">{text.requests}</th>
              <th scope="col">{text.total}</th>
            </tr>
          </thead>
          <tbody>
            {rows.toReversed().map(({ day, requests, total_tokens: tokens }) => (
              <tr key={day}>
                <th scope="row">{day}</th>
                <td>{count(requests)}</td>
                <td>{count(tokens)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </details>
  );
}

interface ChartProps {
  readonly rows: readonly UsageRow[];
  readonly days: readonly string[];
  readonly of: (row: UsageRow) => number;
  readonly label: string;
}

function Chart({ rows, days, of, label }: ChartProps) {
  const { ref, width } = useWidth(FIRST_WIDTH);
  const byDay = new Map(rows.map((row) => [row.day, of(row)]));
  const up = scaleLinear()
    .domain([0, Math.max(1, ...byDay.values())])
    .nice(3)
    .range([0, HEIGHT]);
  const x = scaleBand<string>().domain(days).range([LEFT, width]).paddingInner(0.3).paddingOuter(0.15);
  const bar = Math.min(WIDEST_BAR, x.bandwidth());
  const sill = TOP + HEIGHT;
  const isLong = days.length > LONGEST_MONTH;
  const every = Math.ceil((isLong ? 2 * LABEL : LABEL) / Math.max(1, x.step()));
  return (
    <figure className={styles.figure} ref={ref}>
      <svg width={width} height={sill + AXIS} role="img" aria-label={label}>
        {up
          .ticks(3)
          .filter(Number.isInteger)
          .map((tick) => (
            <g key={tick}>
              <line className={styles.grid} x1={LEFT} x2={width} y1={sill - up(tick)} y2={sill - up(tick)} />
              <text className={styles.tick} x={LEFT - 10} y={sill - up(tick) + 4} textAnchor="end">
                {compact(tick)}
              </text>
            </g>
          ))}
        {days.map((day, i) => {
          const value = byDay.get(day) ?? 0;
          const middle = (x(day) ?? 0) + x.bandwidth() / 2;
          return (
            <g key={day}>
              <title>{`${day}: ${count(value)}`}</title>
              {value === 0 ? null : <path className={styles.bar} d={arch(middle - bar / 2, sill, bar, up(value))} />}
              {i % every === 0 ? (
                <text className={styles.tick} x={middle} y={sill + 17} textAnchor="middle">
                  {isLong ? day.slice(5) : Number(day.slice(-2))}
                </text>
              ) : null}
            </g>
          );
        })}
        <line className={styles.sill} x1={LEFT} x2={width} y1={sill + 0.5} y2={sill + 0.5} />
      </svg>
    </figure>
  );
}
