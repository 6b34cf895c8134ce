/** Draws what all plots have in common: grid, axes, marks, values and table. */
import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { Table, column, timeColumn } from '../ui/table.tsx';
import { clockAt } from '../ui/zones.ts';
import { crosshair, pointerHandlers, keyHandlers, dragged, type PlotTime } from './pointer.ts';
import { type Scale, round, EMPTY_SCALE, LABEL_STEPS_MS } from './scale.ts';
import { useSpan } from './span.tsx';

/** A time that is marked in every plot, such as the time at which a node fell silent. `at`: epoch milliseconds. */
export type PlotMark = { readonly at: number; readonly text: string };

type PlotBound = { readonly value: number; readonly text: string };

export type PlotColumn = { readonly name: string; readonly points: readonly (number | null)[] };

export type PlotProps = {
  readonly title: string;
  readonly unit: string;
  readonly time: PlotTime;
  readonly scale: Scale;
  /** Returns the text of a value for the axis, the table and the crosshair. */
  readonly text: (value: number) => string;
  /** Returns the axis label of a round value, if it differs from `text`. */
  readonly tickText?: ((value: number) => string) | undefined;
  /** The shapes of the key on a grid of 12, in the order of the columns. */
  readonly keys: readonly ComponentChildren[];
  readonly columns: readonly PlotColumn[];
  readonly marks?: readonly PlotMark[];
  /** A limit of the values, which is drawn as a line if the axis includes it. */
  readonly bound?: PlotBound | undefined;
  /** A sentence about what the plot shows. */
  readonly summary: string;
  /** The shapes of the plot, with coordinates in percent of its width and height. */
  readonly children: ComponentChildren;
};

/** The maximum number of rows of the table: the latest ones. */
const TABLE_ROWS = 12;

/** Shows one plot: a caption with a key, axes, marks, a crosshair, a sentence, and a table of the values. */
export function Plot(props: PlotProps) {
  const { title, unit, time, scale, text, tickText, keys, columns, marks = [], bound, summary, children } = props;
  const id = useId();
  const { choose } = useSpan();
  const cross = crosshair.value === null ? null : `${round(crosshair.value * 100)}%`;
  const slot = crosshair.value === null ? null : Math.round(crosshair.value * time.slots - 0.5);
  return (
    <figure class="plot" aria-labelledby={id}>
      <figcaption>
        <h3 id={id}>{title}</h3>
        <span class="unit">{unit}</span>
        {keys.length > 1 && (
          <ul class="key">
            {columns.map(({ name }, at) => (
              <li key={name}>
                <svg viewBox="0 0 12 12" aria-hidden="true">
                  {keys[at]}
                </svg>
                {name}
              </li>
            ))}
          </ul>
        )}
      </figcaption>
      <svg
        class="plot-svg"
        role="img"
        aria-labelledby={`${id} ${id}-sum`}
        tabIndex={0}
        {...pointerHandlers(time, choose)}
        {...keyHandlers(time)}
      >
        {scale.ticks.map((tick, at) => (
          <Grid key={tick} y={round(scale.y(tick))} label={(tickText ?? text)(tick)} isZero={at === 0} />
        ))}
        {bound && <BoundLine bound={bound} scale={scale} />}
        <TimeAxis time={time} />
        <Unrecorded columns={columns} slots={time.slots} />
        {marks.map((mark) => (
          <MarkLine key={`${mark.text} ${mark.at}`} mark={mark} time={time} />
        ))}
        <svg viewBox="0 0 100 100" preserveAspectRatio="none" width="100%" height="100%">
          {children}
        </svg>
        <Dragged time={time} />
        {cross !== null && <line class="cross-l" x1={cross} x2={cross} y1="0" y2="100%" />}
      </svg>
      <div class="plot-says">
        <p class="plot-sum" id={`${id}-sum`}>
          {summary}
        </p>
        {slot !== null && <ValuesAt slot={slot} time={time} columns={columns} text={text} />}
      </div>
      <PlotTable title={title} time={time} columns={columns} text={text} />
    </figure>
  );
}

/** Marks the time before the first value, when the relay had not started or did not record yet. */
function Unrecorded({ columns, slots }: { readonly columns: readonly PlotColumn[]; readonly slots: number }) {
  const firsts = columns.map(({ points }) => points.findIndex((point) => point !== null));
  const first = Math.min(...firsts.map((at) => (at < 0 ? slots : at)));
  if (first === 0) return null;
  const share = (first / Math.max(1, slots)) * 100;
  return (
    <g class="unrecorded">
      <rect width={`${round(share)}%`} height="100%" />
      {share > 25 && (
        <text x={`${round(share / 2)}%`} y="50%" text-anchor="middle">
          not recorded
        </text>
      )}
    </g>
  );
}

type ValuesProps = Pick<PlotProps, 'time' | 'columns' | 'text'> & { readonly slot: number };

/** Shows the values at the crosshair in place of the plot's sentence, so that nothing on the page moves. */
function ValuesAt({ slot, time, columns, text }: ValuesProps) {
  const values = columns.map(({ name, points }) => `${name} ${valueText(points[slot], text)}`);
  return (
    <p class="plot-sum plot-at" aria-hidden="true">
      <b>{clockAt(time.from + (slot + 0.5) * time.stepMs)}</b> {values.join(' · ')}
    </p>
  );
}

function Dragged({ time }: { readonly time: PlotTime }) {
  if (dragged.value === null) return null;
  const { from, to } = dragged.value;
  const [left, right] = [Math.min(from, to), Math.max(from, to)].map((at) =>
    Math.min(100, Math.max(0, ((at - time.from) / (time.slots * time.stepMs)) * 100)),
  );
  return <rect class="drag" x={`${round(left ?? 0)}%`} width={`${round((right ?? 0) - (left ?? 0))}%`} height="100%" />;
}

const valueText = (value: number | null | undefined, text: (value: number) => string): string =>
  value === null || value === undefined ? 'not known' : text(value);

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

function BoundLine({ bound, scale }: { readonly bound: PlotBound; readonly scale: Scale }) {
  const y = round(scale.y(bound.value));
  if (y < 0 || scale === EMPTY_SCALE) return null;
  return (
    <>
      <line class="bound-l" x1="0" x2="100%" y1={`${y}%`} y2={`${y}%`} />
      <text class="bound-t" x="0" y={`${y}%`} dy="-4">
        {bound.text}
      </text>
    </>
  );
}

/** The maximum number of intervals between labels of a time axis. */
const LABELS = 5;
/** If a label is closer to an edge than this, in percent of the width, it is written inside the edge. */
const EDGE = 5;

/** Shows the time of day at round times, with seconds if labels are less than a minute apart. */
function TimeAxis({ time: { from, stepMs, slots } }: { readonly time: PlotTime }) {
  const length = slots * stepMs;
  const step = LABEL_STEPS_MS.find((candidate) => length / candidate <= LABELS) ?? length;
  const first = Math.ceil(from / step) * step;
  const times = Array.from({ length: Math.floor((from + length - first) / step) + 1 }, (_, at) => first + at * step);
  return (
    <>
      {times.map((at) => {
        const x = ((at - from) / length) * 100;
        return (
          <text
            key={at}
            x={`${round(x)}%`}
            y="100%"
            dy="16"
            {...(x > 100 - EDGE ? { class: 'last' } : x >= EDGE && { 'text-anchor': 'middle' })}
          >
            {clockAt(at).slice(0, step < 60_000 ? 8 : 5)}
          </text>
        );
      })}
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
  // A closed table is not rendered, because the overview has one table for each plot.
  const [isOpen, setOpen] = useState(false);
  const first = Math.max(0, time.slots - TABLE_ROWS);
  const rows = Array.from({ length: time.slots - first }, (_, at) => first + at);
  return (
    <details class="as-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary aria-label={`As a table: ${title}`}>As a table</summary>
      {isOpen && (
        <Table
          caption={`${title}, as a table`}
          columns={[
            {
              ...timeColumn('Until', '', (slot: number) => clockAt(time.from + (slot + 1) * time.stepMs)),
              names: true,
            },
            ...columns.map(({ name, points }) => column(name, 'r', (slot: number) => valueText(points[slot], text))),
          ]}
          rows={rows}
          keyOf={String}
          look="figures"
        />
      )}
    </details>
  );
}
