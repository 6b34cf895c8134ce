/** Shows one plot: its caption with a key, axes, marks, a crosshair, a sentence, and a table of the same values. */
import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import { clock } from '../ui/format.ts';
import { crosshair, dragged, pointerHandlers } from './pointer.ts';
import { round, type Scale } from './scale.ts';
import { useSpan } from './span.ts';

/** A moment that is marked in every plot, such as the moment at which a node fell silent. `at`: epoch milliseconds. */
export type PlotMark = { readonly at: number; readonly text: string };

export type PlotColumn = { readonly name: string; readonly points: readonly (number | null)[] };

/** The time that a plot spans: slots of equal length. Times are milliseconds. */
export type PlotTime = { readonly from: number; readonly stepMs: number; readonly slots: number };

type PlotProps = {
  readonly title: string;
  readonly unit: string;
  readonly time: PlotTime;
  readonly scale: Scale;
  /** Returns the text of a value, on the axis, in the table and at the crosshair. */
  readonly text: (value: number) => string;
  /** Returns the text of a round value on the axis, if it differs from `text`. */
  readonly tickText?: ((value: number) => string) | undefined;
  /** The entries of the key, in the order of the columns. */
  readonly keys: readonly ComponentChildren[];
  readonly columns: readonly PlotColumn[];
  readonly marks?: readonly PlotMark[];
  /** A sentence that says what the plot shows. */
  readonly summary: string;
  /** The shapes of the plot, with coordinates in percent of its width and height. */
  readonly children: ComponentChildren;
};

/** The number of rows that the table shows: the latest ones. */
const TABLE_ROWS = 12;
/** The time span, in milliseconds, below which the axis shows seconds. */
const SECONDS_BELOW_MS = 600_000;

export function Plot(props: PlotProps) {
  const { title, unit, time, scale, text, tickText, keys, columns, marks = [], summary, children } = props;
  const id = useId();
  const { choose } = useSpan();
  const slot = crosshair.value === null ? null : Math.round(crosshair.value * time.slots - 0.5);
  return (
    <figure class="plot">
      <figcaption>
        <h3 id={id}>{title}</h3>
        <span class="unit">{unit}</span>
        {(keys.length > 1 || slot !== null) && (
          <ul class="key">
            {slot !== null && <li class="key-time">{clock(isoOf(time.from + (slot + 0.5) * time.stepMs))}</li>}
            {keys.map((entry, at) => (
              <li key={columns[at]?.name}>
                {entry}
                {slot !== null && <b>{valueText(columns[at]?.points[slot], text)}</b>}
              </li>
            ))}
          </ul>
        )}
      </figcaption>
      <svg class="plot-svg" role="img" aria-labelledby={`${id} ${id}-sum`} {...pointerHandlers(time, choose)}>
        {scale.ticks.map((tick, at) => (
          <Grid key={tick} y={round(scale.y(tick))} label={(tickText ?? text)(tick)} isZero={at === 0} />
        ))}
        <TimeAxis time={time} />
        {marks.map((mark) => (
          <MarkLine key={`${mark.text} ${mark.at}`} mark={mark} time={time} />
        ))}
        <svg viewBox="0 0 100 100" preserveAspectRatio="none" width="100%" height="100%">
          {children}
        </svg>
        <Dragged time={time} />
        {crosshair.value !== null && (
          <line
            class="cross-l"
            x1={`${round(crosshair.value * 100)}%`}
            x2={`${round(crosshair.value * 100)}%`}
            y1="0"
            y2="100%"
          />
        )}
      </svg>
      <p class="plot-sum" id={`${id}-sum`}>
        {summary}
      </p>
      <PlotTable title={title} time={time} columns={columns} text={text} />
    </figure>
  );
}

/** Shows the span that is being chosen by dragging. */
function Dragged({ time }: { readonly time: PlotTime }) {
  if (dragged.value === null) return null;
  const { from, to } = dragged.value;
  const [left, right] = [Math.min(from, to), Math.max(from, to)].map((at) =>
    Math.min(100, Math.max(0, ((at - time.from) / (time.slots * time.stepMs)) * 100)),
  );
  return <rect class="drag" x={`${round(left ?? 0)}%`} width={`${round((right ?? 0) - (left ?? 0))}%`} height="100%" />;
}

function valueText(value: number | null | undefined, text: (value: number) => string): string {
  return value === null || value === undefined ? 'not known' : text(value);
}

function Grid({ y, label, isZero }: { readonly y: number; readonly label: string; readonly isZero: boolean }) {
  return (
    <>
      <line class={isZero ? 'grid-0' : 'grid-l'} x1="0" x2="100%" y1={`${y}%`} y2={`${y}%`} />
      <text class="y" x="-8" y={`${y}%`}>
        {label}
      </text>
    </>
  );
}

/** Shows the time of day, with seconds where a plot spans little time. */
function TimeAxis({ time }: { readonly time: PlotTime }) {
  const chars = time.slots * time.stepMs < SECONDS_BELOW_MS ? 8 : 5;
  return (
    <>
      {[0, 25, 50, 75, 100].map((x) => (
        <text
          key={x}
          x={`${x}%`}
          y="100%"
          dy="16"
          {...(x === 100 ? { class: 'last' } : x > 0 && { 'text-anchor': 'middle' })}
        >
          {clock(isoOf(time.from + (x / 100) * time.slots * time.stepMs)).slice(0, chars)}
        </text>
      ))}
    </>
  );
}

function MarkLine({ mark, time }: { readonly mark: PlotMark; readonly time: PlotTime }) {
  const x = ((mark.at - time.from) / (time.slots * time.stepMs)) * 100;
  if (x < 0 || x > 100) return null;
  return (
    <>
      <line class="mark-l" x1={`${round(x)}%`} x2={`${round(x)}%`} y1="-4" y2="100%" />
      <text class="mark-t" x={`${round(x)}%`} dx="2" y="-8">
        {mark.text}
      </text>
    </>
  );
}

type PlotTableProps = Pick<PlotProps, 'title' | 'time' | 'columns' | 'text'>;

function PlotTable({ title, time, columns, text }: PlotTableProps) {
  const first = Math.max(0, time.slots - TABLE_ROWS);
  const rows = Array.from({ length: time.slots - first }, (_, at) => first + at);
  return (
    <details class="as-table">
      <summary>As a table</summary>
      <div class="scroll" tabIndex={0} role="region" aria-label={`${title}, as a table`}>
        <table class="tbl tbl-s">
          <thead>
            <tr>
              <th scope="col">Until, UTC</th>
              {columns.map(({ name }) => (
                <th key={name} scope="col" class="r">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((slot) => (
              <tr key={slot}>
                <th scope="row">{clock(isoOf(time.from + (slot + 1) * time.stepMs))}</th>
                {columns.map(({ name, points }) => (
                  <td key={name} class="r">
                    {valueText(points[slot], text)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}
