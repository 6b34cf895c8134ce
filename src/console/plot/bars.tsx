/** Draws a plot of stacked bars, one for each time slot. In a `loud` layer, every value above 0 is visible. */
import { type PlotColumn, type PlotProps, Plot } from './plot.tsx';
import { linearScale, round } from './scale.ts';

type Layer = PlotColumn & {
  /** The CSS class that gives the layer its colour, such as `f-completed`. */
  readonly fill: string;
  /** Whether a value above 0 is drawn at least LOUD percent high. */
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

/** Returns one SVG path for each layer, so that a plot has few elements, however many bars it shows. */
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
