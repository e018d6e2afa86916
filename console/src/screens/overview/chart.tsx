/**
 * Allowed requests stand on the sill, denied ones hang below it. Every number of it is in the table that opens beneath.
 */

import { scaleBand, scaleLinear } from 'd3-scale';
import { stack } from 'd3-shape';
import { overview as text } from '../../text/en/overview.ts';
import { arch } from '../../ui/arch.ts';
import { compact, count } from '../../ui/number.ts';
import { useWidth } from '../../ui/use-width.ts';
import styles from './chart.module.css';
import type { Bar, Decided } from './decided.ts';
import type { Span } from './search.ts';

const UP = 136;
const DOWN = 56;
const AXIS = 24;
const LEFT = 44;
const TOP = 8;
const FIRST_WIDTH = 760;
/** Pixels that the label of an hour needs. */
const LABEL = 84;
const TONES = ['d1', 'd2', 'd3', 'd4'] as const;

const hour = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const dayHour = new Intl.DateTimeFormat('en-GB', { weekday: 'short', hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat('en-GB', { weekday: 'short', day: 'numeric', month: 'short', timeZone: 'UTC' });

interface ChartProps {
  readonly decided: Decided;
  readonly span: Span;
}

export function Chart({ decided, span }: ChartProps) {
  const { ref, width } = useWidth(FIRST_WIDTH);
  const { bars } = decided;
  const up = scaleLinear()
    .domain([0, Math.max(1, ...bars.map(({ allowed }) => allowed))])
    .nice(3)
    .range([0, UP]);
  const down = scaleLinear()
    .domain([0, Math.max(1, ...bars.map(({ denied }) => denied))])
    .nice(2)
    .range([0, DOWN]);
  const x = scaleBand<number>()
    .domain(bars.map(({ startMs }) => startMs))
    .range([LEFT, width])
    .paddingInner(0.36)
    .paddingOuter(0.18);
  const sill = TOP + UP;
  const layers = stack<Bar, number>()
    .keys(TONES.keys())
    .value((bar, key) => bar.byReason[key] ?? 0)(bars);
  const every = Math.ceil(LABEL / Math.max(1, x.step()));
  const lowest = down.domain()[1] ?? 1;
  return (
    <figure className={styles.figure} ref={ref}>
      <svg width={width} height={sill + DOWN + AXIS} role="img" aria-label={text.chartSays}>
        {up.ticks(3).map((tick) => (
          <g key={tick}>
            {tick === 0 ? null : (
              <line className={styles.grid} x1={LEFT} x2={width} y1={sill - up(tick)} y2={sill - up(tick)} />
            )}
            {tick === 0 || up(tick) < 12 ? null : (
              <text className={styles.label} x={LEFT - 10} y={sill - up(tick) + 4} textAnchor="end">
                {compact(tick)}
              </text>
            )}
          </g>
        ))}
        <line className={styles.grid} x1={LEFT} x2={width} y1={sill + DOWN} y2={sill + DOWN} />
        <text className={styles.label} x={LEFT - 10} y={sill + DOWN + 1} textAnchor="end">
          {compact(lowest)}
        </text>
        {bars.map((bar, i) => (
          <g key={bar.startMs}>
            <title>{text.bar(nameOf(bar.startMs, span), count(bar.allowed), count(bar.denied))}</title>
            <path
              className={i === bars.length - 1 ? styles.now : styles.allowed}
              d={arch(x(bar.startMs) ?? 0, sill, x.bandwidth(), up(bar.allowed))}
            />
            {layers.map((layer) => {
              const [from, to] = layer[i] ?? [0, 0];
              return to === from ? null : (
                <rect
                  key={layer.key}
                  className={styles[TONES[layer.key] ?? 'd4']}
                  x={x(bar.startMs)}
                  width={x.bandwidth()}
                  y={sill + 1 + down(from)}
                  height={Math.max(0.75, down(to) - down(from) - 0.75)}
                />
              );
            })}
            {i % every === 0 && (i === 0 || (x(bar.startMs) ?? 0) + LABEL / 2 < width) ? (
              <text
                className={styles.label}
                x={i === 0 ? LEFT : (x(bar.startMs) ?? 0) + x.bandwidth() / 2}
                y={sill + DOWN + 18}
                textAnchor={i === 0 ? 'start' : 'middle'}
              >
                {labelOf(bars, i, every, span)}
              </text>
            ) : null}
          </g>
        ))}
        <line className={styles.sill} x1={LEFT} x2={width} y1={sill + 0.5} y2={sill + 0.5} />
      </svg>
      <Numbers decided={decided} span={span} />
    </figure>
  );
}

/** How many times larger denied requests are drawn; undefined: not noticeably. */
export function magnified({ bars }: Decided): string | undefined {
  const top = (values: readonly number[], ticks: number): number =>
    scaleLinear()
      .domain([0, Math.max(1, ...values)])
      .nice(ticks)
      .domain()[1] ?? 1;
  const times =
    DOWN /
    top(
      bars.map(({ denied }) => denied),
      2,
    ) /
    (UP /
      top(
        bars.map(({ allowed }) => allowed),
        3,
      ));
  return times < 1.5 ? undefined : compact(Math.round(times));
}

function Numbers({ decided, span }: ChartProps) {
  return (
    <details className={styles.numbers}>
      <summary>{text.numbers[span]}</summary>
      <table className={styles.table}>
        <thead>
          <tr>
            <th scope="col">{text.unit[span]}</th>
            <th scope="col">{text.allowed}</th>
            <th scope="col">{text.denied}</th>
          </tr>
        </thead>
        <tbody>
          {decided.bars.toReversed().map(({ startMs, allowed, denied }) => (
            <tr key={startMs}>
              <th scope="row">{nameOf(startMs, span)}</th>
              <td>{count(allowed)}</td>
              <td>{count(denied)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

function nameOf(startMs: number, span: Span): string {
  return span === '7d' ? day.format(startMs) : dayHour.format(startMs);
}

/** The day stands at the first label, and where it is another than at the label before. */
function labelOf(bars: readonly Bar[], at: number, every: number, span: Span): string {
  const startMs = bars[at]?.startMs ?? 0;
  const before = bars[at - every]?.startMs;
  if (span === '7d') return day.format(startMs);
  return before === undefined || new Date(before).getDate() !== new Date(startMs).getDate()
    ? dayHour.format(startMs)
    : hour.format(startMs);
}
