/** Draws curves as a self-contained SVG that is readable on light and dark backgrounds. */

/**
 * One curve of a plot. Points with a value that is not finite are left out. `dashed`: whether the line is dashed.
 * `ink`: the index of the curve's colour and mark; by default the index of the curve itself.
 */
type PlotLine = {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
  readonly dashed?: boolean;
  readonly ink?: number;
};

export type Plot = {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  /** The kind of the x axis. `log`: logarithmic. `places`: exactly the given x values, evenly spaced. */
  readonly xKind: 'log' | 'places';
  readonly yKind: 'log' | 'linear';
  readonly lines: readonly PlotLine[];
};

/** The width of a plot, in SVG units. */
const WIDTH = 720;
const [LEFT, RIGHT, BOTTOM, TOP] = [76, 36, 56, 44];
const [INNER_HEIGHT, LEGEND_ROW, LEGEND_COLUMNS] = [260, 20, 2];

/** The colours of the curves, which colour-blind readers can distinguish. Each colour also has its own mark. */
const INKS = [
  { light: '#0067a6', dark: '#5ab4f0' },
  { light: '#c24e00', dark: '#ff9d57' },
  { light: '#00805a', dark: '#41d3a2' },
  { light: '#a3407e', dark: '#eb97cb' },
  { light: '#7a6200', dark: '#e8d44d' },
  { light: '#4a4a4a', dark: '#c4c4c4' },
] as const;

type Frame = { readonly x: (value: number) => number; readonly y: (value: number) => number; readonly height: number };

export function plotted(plot: Plot): string {
  const lines = plot.lines.map((line) => ({ ...line, points: line.points.filter(isDrawn(plot)) }));
  const points = lines.flatMap((line) => line.points);
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const xScale = plot.xKind === 'log' ? logScale(xs) : placesScale(xs);
  const yScale = plot.yKind === 'log' ? logScale(ys) : linearScale(ys);
  const legendRows = Math.ceil(lines.length / LEGEND_COLUMNS);
  const top = TOP + legendRows * LEGEND_ROW;
  const frame: Frame = {
    x: (value) => LEFT + xScale.at(value) * (WIDTH - LEFT - RIGHT),
    y: (value) => top + (1 - yScale.at(value)) * INNER_HEIGHT,
    height: top + INNER_HEIGHT + BOTTOM,
  };
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${frame.height}" role="img" aria-label="${escaped(plot.title)}">`,
    style(),
    `<rect class="ground" width="${WIDTH}" height="${frame.height}" rx="6"/>`,
    text({ x: LEFT, y: 26, kind: 'title' }, plot.title),
    ...lines.map((line, i) => legend(line, i)),
    ...axes(plot, frame, { xScale, yScale }),
    ...lines.flatMap((line, i) => curve(line.points, { frame, i: line.ink ?? i, dashed: line.dashed ?? false })),
    '</svg>',
  ];
  return `${parts.join('\n')}\n`;
}

function isDrawn({ xKind, yKind }: Plot): (point: readonly [number, number]) => boolean {
  return ([x, y]) =>
    Number.isFinite(x) && Number.isFinite(y) && (xKind !== 'log' || x > 0) && (yKind !== 'log' || y > 0);
}

function style(): string {
  const ink = (shade: 'light' | 'dark'): string =>
    INKS.map((each, i) => `.c${i}{stroke:${each[shade]}}.f${i}{fill:${each[shade]}}`).join('');
  return [
    '<style>',
    'text{font:13px system-ui,sans-serif;fill:#24292f}.title{font-size:15px;font-weight:600}.ground{fill:#fff}',
    '.grid{stroke:#d8dee4}.axis{stroke:#57606a}.line{fill:none;stroke-width:2}.dashed{stroke-dasharray:6 4}',
    ink('light'),
    `@media(prefers-color-scheme:dark){text{fill:#e6edf3}.ground{fill:#0d1117}.grid{stroke:#30363d}.axis{stroke:#8b949e}${ink('dark')}}`,
    '</style>',
  ].join('');
}

type Scales = { readonly xScale: Scale; readonly yScale: Scale };

function axes({ xLabel, yLabel }: Plot, { x, y, height }: Frame, { xScale, yScale }: Scales): string[] {
  const [right, low] = [WIDTH - RIGHT, height - BOTTOM];
  const high = low - INNER_HEIGHT;
  const middle = (high + low) / 2;
  return [
    ...yScale.ticks.flatMap((value) => [
      `<line class="grid" x1="${LEFT}" x2="${right}" y1="${fixed(y(value))}" y2="${fixed(y(value))}"/>`,
      text({ x: LEFT - 8, y: y(value) + 4, anchor: 'end' }, short(value)),
    ]),
    ...xScale.ticks.flatMap((value) => [
      `<line class="grid" x1="${fixed(x(value))}" x2="${fixed(x(value))}" y1="${high}" y2="${low}"/>`,
      text({ x: x(value), y: low + 20, anchor: 'middle' }, short(value)),
    ]),
    `<path class="axis" fill="none" d="M${LEFT} ${high}V${low}H${right}"/>`,
    text({ x: (LEFT + right) / 2, y: height - 14, anchor: 'middle' }, xLabel),
    `<text text-anchor="middle" transform="translate(20 ${middle}) rotate(-90)">${escaped(yLabel)}</text>`,
  ];
}

function legend({ name, ink, dashed = false }: PlotLine, i: number): string {
  const column = (WIDTH - LEFT - RIGHT) / LEGEND_COLUMNS;
  const x = LEFT + (i % LEGEND_COLUMNS) * column;
  const y = TOP + Math.floor(i / LEGEND_COLUMNS) * LEGEND_ROW;
  const stroke = `<line class="line ${inkOf(ink ?? i, dashed)}" x1="${x}" x2="${x + 28}" y1="${y}" y2="${y}"/>`;
  return `${stroke}${mark(ink ?? i, { x: x + 14, y })}${text({ x: x + 36, y: y + 4 }, name)}`;
}

type Drawn = { readonly frame: Frame; readonly i: number; readonly dashed: boolean };

function curve(points: PlotLine['points'], { frame, i, dashed }: Drawn): string[] {
  if (points.length === 0) return [];
  const at = points.map(([x, y]) => ({ x: frame.x(x), y: frame.y(y) }));
  const path = at.map(({ x, y }) => `${fixed(x)} ${fixed(y)}`).join('L');
  return [`<path class="line ${inkOf(i, dashed)}" d="M${path}"/>`, ...at.map((place) => mark(i, place))];
}

function inkOf(i: number, dashed: boolean): string {
  return `c${i % INKS.length}${dashed ? ' dashed' : ''}`;
}

function mark(i: number, { x, y }: { readonly x: number; readonly y: number }): string {
  const ink = `class="f${i % INKS.length}"`;
  const shapes = ['M-4-4h8v8h-8Z', 'M0-5.5 5 4H-5Z', 'M0-5.5 5.5 0 0 5.5-5.5 0Z', 'M0 5.5 5-4H-5Z'];
  const shape = i === 0 ? undefined : shapes[(i - 1) % shapes.length];
  if (shape === undefined) return `<circle ${ink} cx="${fixed(x)}" cy="${fixed(y)}" r="4.5"/>`;
  return `<path ${ink} transform="translate(${fixed(x)} ${fixed(y)})" d="${shape}"/>`;
}

type Place = {
  readonly x: number;
  readonly y: number;
  readonly anchor?: 'middle' | 'end';
  readonly kind?: 'title';
};

function text({ x, y, anchor, kind }: Place, content: string): string {
  const anchored = anchor === undefined ? '' : ` text-anchor="${anchor}"`;
  const classed = kind === undefined ? '' : ` class="${kind}"`;
  return `<text x="${fixed(x)}" y="${fixed(y)}"${anchored}${classed}>${escaped(content)}</text>`;
}

function fixed(value: number): string {
  return String(Math.round(value * 10) / 10);
}

function short(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en-US', { maximumFractionDigits: 6 });
}

function escaped(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

// Computes the axes of a plot: the positions of values, and the values with labels.

/** One axis of a plot: the position of a value, and the values with labels. */
export type Scale = {
  readonly ticks: readonly number[];
  /** Returns the position of a value: 0 at the start of the axis, 1 at its end. */
  at(value: number): number;
};

const STEPS = [1, 2, 5] as const;
/** The maximum number of decades with which an axis also has labels within the decades. */
const FEW_DECADES = 2;
/** The maximum number of steps of a linear axis. */
const LINEAR_TICKS = 5;

/**
 * Returns a logarithmic axis, from the step at or below the smallest value to the step at or above the largest. All
 * values must be above 0.
 */
export function logScale(values: readonly number[]): Scale {
  const low = stepBelow(Math.min(...values));
  const high = Math.max(stepAbove(Math.max(...values)), low * 10);
  const [from, to] = [Math.log10(low), Math.log10(high)];
  const steps = to - from <= FEW_DECADES ? STEPS : STEPS.slice(0, 1);
  const ticks: number[] = [];
  for (let decade = Math.floor(from); decade <= to; decade++) {
    for (const step of steps) ticks.push(step * 10 ** decade);
  }
  const within = (value: number): boolean => value >= low * 0.999 && value <= high * 1.001;
  return { ticks: ticks.filter(within), at: (value) => (Math.log10(value) - from) / (to - from) };
}

/** Returns a linear axis from 0 to a round number at or above the largest value. */
export function linearScale(values: readonly number[]): Scale {
  const greatest = Math.max(...values, Number.MIN_VALUE);
  const size = 10 ** Math.floor(Math.log10(greatest / LINEAR_TICKS));
  const step = [1, 2, 5, 10].map((times) => times * size).find((one) => one * LINEAR_TICKS >= greatest) ?? greatest;
  const count = Math.ceil(greatest / step);
  const ticks = Array.from({ length: count + 1 }, (_, i) => i * step);
  return { ticks, at: (value) => value / (count * step) };
}

/** Returns an axis with exactly these values, evenly spaced. Used for a few sizes that are not powers of ten. */
function placesScale(values: readonly number[]): Scale {
  const places = [...new Set(values)].sort((a, b) => a - b);
  return { ticks: places, at: (value) => (places.indexOf(value) + 0.5) / places.length };
}

function stepBelow(value: number): number {
  const decade = 10 ** Math.floor(Math.log10(value));
  return decade * (STEPS.findLast((step) => step * decade <= value) ?? 1);
}

function stepAbove(value: number): number {
  const decade = 10 ** Math.floor(Math.log10(value));
  return decade * (STEPS.find((step) => step * decade >= value) ?? 10);
}
