/** Draws a plot of lines: `strong` for the main line, `quiet` for a second one. */
import { type PlotColumn, type PlotProps, Plot } from './plot.tsx';
import { type ScaleKind, logScale, linearScale, linePath } from './scale.ts';

type Line = PlotColumn & { readonly look: 'strong' | 'quiet' };

type LinesProps = Omit<PlotProps, 'scale' | 'keys' | 'columns' | 'children'> & {
  readonly lines: readonly Line[];
  readonly log?: boolean;
  /** The kind of the values, if the axis depends on it: whole numbers, or durations in milliseconds. */
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

/** Returns the SVG path of the area below a line. Each continuous part of the line is closed at the bottom. */
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
