/** Shows a plot of lines: `strong` for the main one, `quiet` for its companion. */
import { linearScale, linePath, logScale } from './scale.ts';
import { Plot, type PlotColumn, type PlotMark, type PlotTime } from './plot.tsx';

export type Line = PlotColumn & { readonly look: 'strong' | 'quiet' };

type LinesProps = {
  readonly title: string;
  readonly unit: string;
  readonly time: PlotTime;
  readonly lines: readonly Line[];
  readonly text: (value: number) => string;
  readonly tickText?: (value: number) => string;
  readonly summary: string;
  readonly log?: boolean;
  /** Whether the values are counts, so that the axis has no fractions. */
  readonly isWhole?: boolean;
  /** Whether the area below the first line is filled. */
  readonly area?: boolean;
  readonly marks?: readonly PlotMark[];
};

const LOOKS = { strong: 'ln ln-1', quiet: 'ln ln-2' };

export function LinesPlot({ lines, log = false, isWhole = false, area = false, ...plot }: LinesProps) {
  const values = lines.flatMap(({ points }) => points.filter((point) => point !== null));
  const above = values.filter((value) => value > 0);
  const scale =
    log && above.length > 0
      ? logScale(Math.min(...above), Math.max(...above))
      : linearScale(Math.max(1, ...values), isWhole);
  const [first] = lines;
  const ground = first && area ? groundPath(linePath(first.points, scale.y)) : null;
  return (
    <Plot
      {...plot}
      scale={scale}
      columns={lines}
      keys={lines.map(({ name, look }) => (
        <>
          <svg viewBox="0 0 12 12" aria-hidden="true">
            <path class={LOOKS[look]} d="M0 6h12" />
          </svg>
          {name}
        </>
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
