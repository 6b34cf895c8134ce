/** Lists the pages of docs/ that have a generated part, and the text that each of them should have. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { usageOfArgs } from '../../src/cli/command.ts';
import type { Verb } from '../../src/cli/verb.ts';
import { VERBS } from '../../src/cli/verbs.ts';
import * as limits from '../../src/core/limits.ts';
import { METRICS, type MetricType } from '../../src/core/metrics/metric-texts.ts';
import { SHARE_BOUNDS, SHARE_NAMES } from '../../src/core/shares/share-bounds.ts';
import { FILE_SETTINGS } from '../../src/settings/setting-files.ts';
import { SETTINGS_OF_SHARE } from '../../src/settings/share-settings.ts';
import { DIRECT_ONLY, isSettingName, type SettingName, SETTINGS, SWITCHES } from '../../src/settings.ts';
import { namedFiles } from '../release/identity.ts';
import { framesSchema } from './frames-schema.ts';
import { LIMIT_TEXTS, SETTING_TEXTS } from './texts.ts';

// Writes the generated part of docs/cli.md: every verb of operators, from the table of verbs.

/** Returns Markdown with one table of all verbs. */
function commandsPart(): string {
  const rows = VERBS.map((verb) => [
    `\`${[verb.name, usageOfArgs(verb)].join(' ').trim()}\``,
    verb.brief,
    flagsOf(verb),
  ]);
  return table(['command', 'what it does', 'flags of its own'], rows);
}

function flagsOf({ flags = {} }: Verb): string {
  return Object.keys(flags)
    .map((name) => `\`--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}\``)
    .join(', ');
}

// Writes the generated part of docs/limits.md: the limits of core/limits.ts, grouped by what they limit.

type Bound = number | { readonly default: number; readonly min: number; readonly max: number };

const BOUNDS: Readonly<Record<string, unknown>> = { ...limits };

/** Returns Markdown with one table for each group of limits. Throws if a text describes a limit that does not exist. */
function limitsPart(): string {
  return Object.entries(LIMIT_TEXTS)
    .map(([title, texts]) => {
      const rows = Object.entries(texts).map(([name, text]) => [text, figure(name, boundOf(name))]);
      return `## ${title}\n\n${table(['what', 'figure'], rows)}`;
    })
    .join('\n\n');
}

function boundOf(name: string): Bound {
  const bound = BOUNDS[name];
  if (typeof bound === 'number' || isRange(bound)) return bound;
  throw new Error(`src/core/limits.ts has no bound ${name}.`);
}

function isRange(bound: unknown): bound is Exclude<Bound, number> {
  return typeof bound === 'object' && bound !== null && 'default' in bound && 'min' in bound && 'max' in bound;
}

function figure(name: string, bound: Bound): string {
  if (typeof bound === 'number') return amount(name, bound);
  return `${amount(name, bound.default)}; ${amount(name, bound.min)} to ${amount(name, bound.max)}`;
}

// Writes the generated part of docs/operating.md: every metric of the relay, from the list of metrics.

const TITLES: Readonly<Record<MetricType, string>> = {
  counter: 'Counters',
  histogram: 'Durations, as histograms',
  gauge: 'State, computed when it is read and, of those in `series`, every five seconds',
};

/** Returns Markdown with one table for each type of metric. */
function metricsPart(): string {
  return Object.entries(TITLES)
    .map(([type, title]) => {
      const rows = METRICS.filter((metric) => metric.type === type).map(({ exposedName, label, series, help }) => [
        `\`${exposedName}\``,
        label === null ? '' : `\`${label}\``,
        series.map((name) => `\`${name}\``).join(', '),
        help,
      ]);
      const head = ['metric', 'label', 'name in `series`', 'what it says'];
      return `### ${title}\n\n${table(head, rows)}`;
    })
    .join('\n\n');
}

// Writes the generated part of docs/settings.md: every setting with its default and its range, from the settings'
// schema.

/**
 * Returns Markdown with one table for each group of settings, and one for the shares (the limits of what one user may
 * hold).
 */
function settingsPart(): string {
  const groups = Object.entries(SETTING_TEXTS).map(([title, texts]) => {
    const rows = Object.entries(texts).map(([name, text]) => (isSettingName(name) ? settingRow(name, text) : []));
    return `## ${title}\n\n${table(['setting', 'default', 'values', 'what it does'], rows)}`;
  });
  return [...groups, `## Shares\n\n${sharesTable()}`].join('\n\n');
}

/** Returns the names of the settings that settingsPart describes. */
export function describedSettings(): readonly string[] {
  const own = Object.values(SETTING_TEXTS).flatMap((texts) => Object.keys(texts));
  return [...own, ...Object.values(SETTINGS_OF_SHARE).flatMap((pair) => pair.filter((name) => name !== null))];
}

function settingRow(name: SettingName, text: string): readonly string[] {
  const file = FILE_SETTINGS.includes(name) ? '; can be read from a file' : '';
  return [name, defaultOf(name), valuesOf(name), text + file];
}

function defaultOf(name: SettingName): string {
  const value: unknown = SETTINGS.shape[name].safeParse(undefined).data;
  if (SWITCHES.has(name)) return value === true ? 'on' : 'off';
  if (typeof value === 'number') return amount(name, value);
  return typeof value === 'string' && value !== '' ? `\`${value}\`` : 'none';
}

function valuesOf(name: SettingName): string {
  if (SWITCHES.has(name)) return 'on, off';
  const schema = z.toJSONSchema(SETTINGS.shape[name], { unrepresentable: 'any' });
  if (schema.enum) return schema.enum.map((value) => `\`${String(value)}\``).join(', ');
  const { minimum, maximum } = schema;
  if (minimum === undefined || maximum === undefined) return '';
  return `${amount(name, minimum)} to ${amount(name, maximum)}`;
}

function sharesTable(): string {
  const rows = SHARE_NAMES.map((share) => {
    const [guarantee, total] = SETTINGS_OF_SHARE[share];
    const bound = SHARE_BOUNDS[share];
    const mode = DIRECT_ONLY.includes(guarantee) ? 'direct' : 'both';
    const atMost = total === null || bound.total === null ? '' : `${total}: ${amount(total, bound.total)}`;
    return [`\`${share}\``, `${guarantee}: ${amount(guarantee, bound.guarantee)}`, atMost, mode];
  });
  return table(['share', 'guarantee of one user', 'total of all users', 'mode'], rows);
}

/** Writes a Markdown table whose columns are padded as prettier pads them. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((_, i) => Math.max(3, ...[head, ...rows].map((row) => (row[i] ?? '').length)));
  const line = (row: readonly string[]): string =>
    `| ${widths.map((width, i) => (row[i] ?? '').padEnd(width)).join(' | ')} |`;
  return [line(head), `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...rows.map(line)].join('\n');
}

// Writes a number of a setting or limit with its unit, as the documentation shows it.

const UNITS = {
  ms: [
    [24 * 3600_000, 'd'],
    [3600_000, 'h'],
    [60_000, 'min'],
    [1000, 's'],
  ],
  bytes: [
    [1024 * 1024 * 1024, 'GiB'],
    [1024 * 1024, 'MiB'],
    [1024, 'KiB'],
  ],
} as const;

/**
 * Writes a number with the largest unit that leaves it whole, such as `16 KiB`. The setting's name says the unit:
 * `_MS`, `_SECONDS`, `BYTES`.
 */
export function amount(name: string, value: number): string {
  if (/_SECONDS$/.test(name)) return inUnits(value * 1000, UNITS.ms, 'ms');
  if (/_MS$/.test(name)) return inUnits(value, UNITS.ms, 'ms');
  if (/BYTES/.test(name)) return inUnits(value, UNITS.bytes, 'bytes');
  return grouped(value);
}

function inUnits(value: number, units: readonly (readonly [number, string])[], smallest: string): string {
  const unit = value === 0 ? undefined : units.find(([size]) => value % size === 0);
  return unit ? `${grouped(value / unit[0])} ${unit[1]}` : `${grouped(value)} ${smallest}`;
}

function grouped(value: number): string {
  return value < 10_000 ? String(value) : String(value).replaceAll(/\B(?=(\d{3})+$)/g, ' ');
}

const PARTS = [
  { page: 'docs/settings.md', part: settingsPart },
  { page: 'docs/limits.md', part: limitsPart },
  { page: 'docs/operating.md', part: metricsPart },
  { page: 'docs/cli.md', part: commandsPart },
] as const;

const BEGIN = '<!-- generated by npm run docs: begin -->';
const END = '<!-- generated by npm run docs: end -->';

type GeneratedPage = {
  readonly page: string;
  readonly file: string;
  readonly text: string;
  readonly now: string;
};

/** Returns each generated file and each page with a generated part: its path, and its text as it should be and is. */
export function generatedPages(): readonly GeneratedPage[] {
  const pages = PARTS.map(({ page, part }) => {
    const { file, now } = fileOf(page);
    const [before, after] = splitAt(now, page);
    return { page, file, now, text: `${before}${BEGIN}\n\n${part()}\n\n${END}${after}` };
  });
  const page = 'frames.schema.json';
  const schema = { page, ...fileOf(page), text: `${JSON.stringify(framesSchema(), null, 2)}\n` };
  return [...pages, schema, ...namedFiles()];
}

function fileOf(page: string): Pick<GeneratedPage, 'file' | 'now'> {
  const file = fileURLToPath(new URL(`../../${page}`, import.meta.url));
  return { file, now: readFileSync(file, 'utf8') };
}

function splitAt(text: string, page: string): readonly [string, string] {
  const from = text.indexOf(BEGIN);
  const to = text.indexOf(END);
  if (from < 0 || to < from) throw new Error(`${page} has no place for its generated part.`);
  return [text.slice(0, from), text.slice(to + END.length)];
}
