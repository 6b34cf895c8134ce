/** Draws plots of bars and lines. Keeps the span of time that a person chose for them, by dragging or in a dialog. */
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useId, useMemo, useState } from 'preact/hooks';
import { RequestError } from '../api/request.ts';
import { FormDialog, TextField } from '../ui/dialogs.tsx';
import { useUrlState } from '../ui/filters.tsx';
import { Table, column, timeColumn } from '../ui/table.tsx';
import { readTime, writeTime } from '../ui/values.tsx';
import { clockAt } from '../ui/words.ts';

/** A moment that is marked in every plot, such as the moment at which a node fell silent. `at`: epoch milliseconds. */
export type PlotMark = { readonly at: number; readonly text: string };

export type PlotBound = { readonly value: number; readonly text: string };

type PlotColumn = { readonly name: string; readonly points: readonly (number | null)[] };

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
  /** The shapes of the key, in the order of the columns, on a grid of 12. */
  readonly keys: readonly ComponentChildren[];
  readonly columns: readonly PlotColumn[];
  readonly marks?: readonly PlotMark[];
  /** A bound of the values, which is drawn as a line while the axis reaches it. */
  readonly bound?: PlotBound | undefined;
  /** A sentence that says what the plot shows. */
  readonly summary: string;
  /** The shapes of the plot, with coordinates in percent of its width and height. */
  readonly children: ComponentChildren;
};

/** The number of rows that the table shows: the latest ones. */
const TABLE_ROWS = 12;

/** Shows one plot: its caption with a key, axes, marks, a crosshair, a sentence, and a table of the same values. */
function Plot(props: PlotProps) {
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

/** Marks the time before the first value: the relay had not started, or did not record yet. */
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

/** Shows the values at the crosshair over the sentence of the plot, so that nothing on the page moves. */
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

/** The distances that two labels of the time axis may have, in milliseconds. */
const LABEL_STEPS_MS = [
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * 1_000),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60_000),
  ...[1, 2, 3, 6, 12, 24].map((hours) => hours * 3_600_000),
];
/** The number of distances between labels that a time axis has at most. */
const LABELS = 5;
/** The distance from an edge below which a label is written inside the edge, in percent of the width. */
const EDGE = 5;

/** Shows the time of day at round times, with seconds where the labels are less than a minute apart. */
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
  // A closed table is not rendered, because the overview has one for each plot.
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

// Draws a plot of stacked bars, one for each slot of time. In a `loud` layer, every value above 0 is visible.

type Layer = PlotColumn & {
  /** The CSS class that gives the layer its colour, such as `f-completed`. */
  readonly fill: string;
  /** Whether a value above 0 is drawn at least 2 % high. */
  readonly loud?: boolean;
};

type BarsProps = Omit<PlotProps, 'scale' | 'keys' | 'columns' | 'children'> & {
  /** The layers, from the bottom to the top. */
  readonly layers: readonly Layer[];
};

/** The minimum height of a value of a loud layer, in percent. */
const LOUD = 2;

export function BarsPlot({ layers, ...plot }: BarsProps) {
  const { slots } = plot.time;
  const sums = Array.from({ length: slots }, (_, slot) =>
    layers.reduce((sum, { points }) => sum + (points[slot] ?? 0), 0),
  );
  const scale = linearScale(Math.max(0, ...sums));
  const width = 100 / Math.max(1, slots);
  return (
    <Plot
      {...plot}
      scale={scale}
      columns={layers}
      keys={layers.map(({ fill }) => (
        <rect class={fill} x="1" y="1" width="10" height="10" rx="1.5" />
      ))}
    >
      {layerPaths(layers, { slots, width, y: scale.y }).map((path, at) => (
        <path key={layers[at]?.name} class={layers[at]?.fill} d={path} />
      ))}
    </Plot>
  );
}

type Place = { readonly slots: number; readonly width: number; readonly y: (value: number) => number };

/** Returns one SVG path for each layer, so that a plot has few elements however many bars it shows. */
function layerPaths(layers: readonly Layer[], { slots, width, y }: Place): readonly string[] {
  const paths = layers.map(() => '');
  for (let slot = 0; slot < slots; slot++) {
    const x = round(slot * width + width * 0.1);
    const right = round(slot * width + width * 0.9);
    let base = 100;
    layers.forEach(({ points, loud }, at) => {
      const value = points[slot] ?? 0;
      if (value <= 0) return;
      const top = round(Math.max(0, base - Math.max(100 - y(value), loud ? LOUD : 0)));
      paths[at] += `M${x} ${base}V${top}H${right}V${base}Z`;
      base = top;
    });
  }
  return paths;
}

// Shows a plot of lines: `strong` for the main one, `quiet` for its companion.

type Line = PlotColumn & { readonly look: 'strong' | 'quiet' };

type LinesProps = Omit<PlotProps, 'scale' | 'keys' | 'columns' | 'children'> & {
  readonly lines: readonly Line[];
  readonly log?: boolean;
  /** What the values are, if the axis depends on it: whole numbers, or durations in milliseconds. */
  readonly kind?: ScaleKind;
  /** Whether the area below the first line is filled. */
  readonly area?: boolean;
};

const LOOKS = { strong: 'ln ln-1', quiet: 'ln ln-2' };

export function LinesPlot({ lines, log = false, kind, area = false, ...plot }: LinesProps) {
  const values = lines.flatMap(({ points }) => points.filter((point) => point !== null));
  const above = values.filter((value) => value > 0);
  const scale =
    log && above.length > 0
      ? logScale(Math.min(...above), Math.max(...above))
      : linearScale(Math.max(0, ...values), kind);
  const [first] = lines;
  const ground = first && area ? groundPath(linePath(first.points, scale.y)) : null;
  return (
    <Plot
      {...plot}
      scale={scale}
      columns={lines}
      keys={lines.map(({ look }) => (
        <path class={LOOKS[look]} d="M0 6h12" />
      ))}
    >
      {ground && <path class="ln-a" d={ground} />}
      {lines.map(({ name, look, points }) => (
        <path key={name} class={LOOKS[look]} d={linePath(points, scale.y)} />
      ))}
    </Plot>
  );
}

/** Returns the SVG path of the area below a line. Each part of the line is closed at the bottom. */
function groundPath(line: string): string {
  return line
    .split('M')
    .filter((part) => part !== '')
    .map((part) => {
      const numbers = part.match(/[\d.]+/g) ?? [];
      const xs = [...part.matchAll(/(?:^|L)([\d.]+)/g)].map((match) => match[1] ?? '0');
      return `M${numbers[0] ?? 0} 100L${part}V100H${xs[0] ?? 0}Z`;
    })
    .join('');
}

// Tracks the pointer and the arrow keys in the plots: a crosshair in all of them at once, and the span that a person chooses by dragging.

/** The position of the pointer, from 0 at the left edge to 1 at the right one; null while it is in no plot. */
const crosshair = signal<number | null>(null);

/** The span that is being chosen by dragging, or null. Dragging began at `from`, so `to` may be earlier. */
const dragged = signal<TimeSpan | null>(null);

/** The least width of a drag, as a fraction of the plot's width. A shorter movement is a click. */
const LEAST_SHARE = 0.02;

/** Returns the pointer handlers for the drawing of a plot. A finger scrolls the page and chooses nothing. */
function pointerHandlers({ from, stepMs, slots }: PlotTime, choose: (span: TimeSpan) => void) {
  const length = slots * stepMs;
  const timeAt = (event: PointerEvent): number => from + shareOf(event) * length;
  return {
    onPointerDown: (event: PointerEvent): void => {
      if (event.button !== 0 || event.pointerType === 'touch' || !(event.currentTarget instanceof Element)) return;
      event.currentTarget.setPointerCapture(event.pointerId);
      dragged.value = { from: timeAt(event), to: timeAt(event) };
    },
    onPointerMove: (event: PointerEvent): void => {
      crosshair.value = Math.min(0.9999, shareOf(event));
      if (dragged.value !== null) dragged.value = { from: dragged.value.from, to: timeAt(event) };
    },
    onPointerUp: (): void => {
      const span = dragged.value;
      dragged.value = null;
      if (span !== null && Math.abs(span.to - span.from) >= length * LEAST_SHARE)
        choose({ from: Math.min(span.from, span.to), to: Math.max(span.from, span.to) });
    },
    onPointerCancel: (): void => void (dragged.value = null),
    onPointerLeave: (): void => void (crosshair.value = null),
  };
}

/** Returns the key handlers for the drawing of a plot: the arrow keys move the crosshair by one slot. */
function keyHandlers({ slots }: PlotTime) {
  const middleOf = (slot: number): number => (Math.min(slots - 1, Math.max(0, slot)) + 0.5) / slots;
  return {
    onKeyDown: (event: KeyboardEvent): void => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      const slot = Math.round((crosshair.value ?? 1) * slots - 0.5);
      crosshair.value = middleOf(crosshair.value === null ? slots - 1 : slot + by);
    },
    onBlur: (): void => void (crosshair.value = null),
  };
}

/** Returns where the pointer is in the drawing, from 0 at its left edge to 1 at its right one. */
function shareOf({ currentTarget, clientX }: PointerEvent): number {
  if (!(currentTarget instanceof Element)) return 0;
  const { left, width } = currentTarget.getBoundingClientRect();
  return Math.min(1, Math.max(0, (clientX - left) / width));
}

// Computes the vertical scales of plots: the height of each value in percent, and round ticks.

type Scale = {
  /** Returns the position of a value in percent: 0 at the top, 100 at the bottom, as in SVG. */
  readonly y: (value: number) => number;
  readonly ticks: readonly number[];
};

/** What the values of a scale are: any numbers, whole numbers, or durations in milliseconds. */
type ScaleKind = 'any' | 'whole' | 'duration';

/** The scale of a plot without a value above 0: from 0 to 1, so that its height says something. */
const EMPTY_SCALE: Scale = { y: (value) => 100 - value * 100, ticks: [0, 1] };

/** Returns a scale from 0 to a round number that is at least `most`, in at most 4 steps. */
function linearScale(most: number, kind: ScaleKind = 'any'): Scale {
  if (most <= 0) return EMPTY_SCALE;
  const step = stepOf(most / 4, kind);
  const steps = Math.max(1, Math.ceil(most / step - 1e-9));
  const top = step * steps;
  return { y: (value) => 100 - (value / top) * 100, ticks: Array.from({ length: steps + 1 }, (_, at) => at * step) };
}

/** Returns the smallest round step of a scale that is not below `rough`. */
function stepOf(rough: number, kind: ScaleKind): number {
  const step = roundStep(rough);
  if (kind === 'whole') return Math.ceil(step);
  if (kind === 'duration' && rough > 1_000) return LABEL_STEPS_MS.find((candidate) => candidate >= rough) ?? step;
  return step;
}

/** Returns the smallest number that is not below `rough` and is 1, 2, 2.5 or 5 times a power of ten. */
function roundStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, Number.MIN_VALUE)));
  const factor = [1, 2, 2.5, 5, 10].find((candidate) => candidate * power >= rough - 1e-12) ?? 10;
  return factor * power;
}

/** Returns a scale of powers of ten, from the one at or below `least` to the one at or above `most`, both above 0. */
function logScale(least: number, most: number): Scale {
  const low = Math.floor(Math.log10(least));
  const high = Math.max(low + 1, Math.ceil(Math.log10(most) - 1e-9));
  const ticks = Array.from({ length: high - low + 1 }, (_, at) => 10 ** (low + at));
  return { y: (value) => 100 - ((Math.log10(Math.max(value, 10 ** low)) - low) / (high - low)) * 100, ticks };
}

/** Returns the SVG path through the known points, with a gap where one is unknown. Its coordinates are in percent. */
function linePath(points: readonly (number | null)[], y: Scale['y']): string {
  let path = '';
  let previous: number | null = null;
  points.forEach((value, at) => {
    if (value !== null) {
      const x = xOf(at, points.length);
      const height = round(y(value));
      if (previous === null) path += `M${x} ${height}`;
      else path += `L${x} ${height}`;
    }
    previous = value;
  });
  return path;
}

/** Returns the middle of slot `at` in percent of the width, from 0 to 100. */
const xOf = (at: number, slots: number): number => round(((at + 0.5) / Math.max(1, slots)) * 100);

const round = (value: number): number => Math.round(value * 100) / 100;

// Keeps the span of time that a person chose for the plots, and shows the dialog that asks for it.

/** A span of time. Both ends are epoch milliseconds. */
export type TimeSpan = { readonly from: number; readonly to: number };

/** How long the relay keeps series, in milliseconds. */
export const KEPT_MS = 86_400_000;
/** The length of the shortest span, in milliseconds: six of the shortest steps. */
const LEAST_MS = 30_000;

/** The span that two texts name, or a sentence that says why they name none. */
type ReadSpan =
  { readonly span: TimeSpan; readonly fault?: undefined } | { readonly span?: undefined; readonly fault: string };

/** Reads the two ends of a span as people write them; see `readTime`. */
function readSpan(from: string, to: string, now: number): ReadSpan {
  const span = { from: readTime(from, now), to: readTime(to, now) };
  if (span.from === null || span.to === null)
    return { fault: `“${span.from === null ? from : to}” is not a time. Write 14:31, or 2026-11-21T14:31, in UTC.` };
  if (span.to <= span.from) return { fault: 'The span ends before it begins.' };
  if (span.to - span.from < LEAST_MS) return { fault: `The shortest span is ${LEAST_MS / 1000} seconds.` };
  if (span.from >= now) return { fault: 'The span lies in the future.' };
  if (span.to <= now - KEPT_MS) return { fault: 'The relay keeps series for a day, and the span is older.' };
  return { span: { from: span.from, to: span.to } };
}

type SpanState = {
  /** The chosen span. Null: none is chosen, so the plots show a window up to now. */
  readonly span: TimeSpan | null;
  /** The reason why the span in the URL is not shown; null if it is shown, or if there is none. */
  readonly fault: string | null;
  /** Shows this span, widened to the shortest one if needed, and adds an entry to the browser's history. */
  readonly choose: (span: TimeSpan) => void;
};

/** Returns the span that the URL names in its members `from` and `to`. */
export function useSpan(): SpanState {
  const { values, change } = useUrlState();
  const { from, to } = values;
  // The URL is read once for each change, so that a shown span is not refused later because it has become too old.
  const { span, fault } = useMemo(() => readEnds(from, to), [from, to]);
  const choose = (chosen: TimeSpan): void => {
    const wider = Math.max(0, LEAST_MS - (chosen.to - chosen.from)) / 2;
    const first = Math.floor((chosen.from - wider) / 1000) * 1000;
    const last = Math.ceil((chosen.to + wider) / 1000) * 1000;
    change({ from: writeTime(first), to: writeTime(last), window: null });
  };
  return { span: span ?? null, fault: fault ?? null, choose };
}

function readEnds(from: string | undefined, to: string | undefined): Partial<ReadSpan> {
  if (from === undefined && to === undefined) return {};
  if (from === undefined || to === undefined) return { fault: 'The address names only one end of a span.' };
  return readSpan(from, to, Date.now());
}

type SpanDialogProps = {
  /** The span that the fields show at first. */
  readonly shown: TimeSpan;
  readonly onChoose: (span: TimeSpan) => void;
  readonly onClose: () => void;
};

/** Shows the dialog that asks for the begin and end of the span that the plots show. */
export function SpanDialog({ shown, onChoose, onClose }: SpanDialogProps) {
  const [from, setFrom] = useState(writeTime(shown.from));
  const [to, setTo] = useState(writeTime(shown.to));
  const choose = async (): Promise<void> => {
    const { span, fault } = readSpan(from.trim(), to.trim(), Date.now());
    if (span === undefined) throw new RequestError('invalid_argument', fault);
    onChoose(span);
  };
  return (
    <FormDialog
      title="Choose a span"
      about={<p class="soft">The plots show this span and stand still. With a mouse, drag over a plot instead.</p>}
      confirm="Show the span"
      keep="Close"
      danger={false}
      failed="This is not a span of time."
      act={choose}
      onClose={onClose}
    >
      <TextField label="From, UTC" id="span-from" spellcheck={false} value={from} onText={setFrom} autofocus />
      <TextField label="To, UTC" id="span-to" spellcheck={false} value={to} onText={setTo} />
      <p class="hint">Such as 14:31, 14:31:12 or 2026-11-21T14:31. Without a day: the latest one. Kept for a day.</p>
    </FormDialog>
  );
}
