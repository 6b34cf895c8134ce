/** Writes the generated part of docs/metrics.md: all metrics of the relay, from the list of metrics. */
import { METRICS, type MetricType } from '../../src/core/metrics/metric-texts.ts';
import { table } from './table.ts';

const TITLES: Readonly<Record<MetricType, string>> = {
  counter: 'Counters',
  histogram: 'Durations, as histograms',
  gauge: 'State, computed when it is read and, of those in `series`, every five seconds',
};

/** Returns Markdown with one table for each type of metric. */
export function metricsPart(): string {
  return Object.entries(TITLES)
    .map(([type, title]) => {
      const rows = METRICS.filter((metric) => metric.type === type).map(({ exposedName, label, series, help }) => [
        `\`${exposedName}\``,
        label === null ? '' : `\`${label}\``,
        series.map((name) => `\`${name}\``).join(', '),
        help,
      ]);
      const head = ['metric', 'label', 'name in `series`', 'what it says'];
      return `## ${title}\n\n${table(head, rows)}`;
    })
    .join('\n\n');
}
