/** Checks texts of `/metrics` strictly, so that tests find faults that a lenient parser would accept. */

export type Sample = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
};
export type ParsedFamily = { readonly type: string; readonly help: string; readonly samples: Sample[] };

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*?)\})? (\S+)(?: # \{(.*)\} (\S+) (\d+(?:\.\d+)?))?$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/gy;
const SUFFIXES = { histogram: ['_bucket', '_sum', '_count'], counter: ['_total', ''], gauge: [''] } as const;

/**
 * Returns the metric families of an exposition by name. Throws for a line of another form, a sample without its family
 * before it, a repeated sample, a histogram that is not cumulative, and an exemplar that OpenMetrics does not allow.
 */
export function parseExposition(text: string, { openMetrics = false } = {}): ReadonlyMap<string, ParsedFamily> {
  const families = new Map<string, ParsedFamily>();
  const seen = new Set<string>();
  let help = '';
  let name = '';
  const lines = text.split('\n');
  if (lines.pop() !== '') throw new Error('The text does not end with a line feed.');
  if (openMetrics && lines.pop() !== '# EOF') throw new Error('The text does not end with # EOF.');
  for (const line of lines) {
    if (line === '' && !openMetrics) continue;
    const [, kind, of = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (kind === 'HELP') [name, help] = [of, rest];
    else if (kind === 'TYPE') {
      if (of !== name || families.has(of)) throw new Error(`TYPE without HELP, or twice: ${line}`);
      families.set(of, { type: rest, help, samples: [] });
    } else {
      const sample = sampleOf(line, openMetrics);
      const family = families.get(name) ?? fail(`no family: ${line}`);
      const suffixes: readonly string[] =
        SUFFIXES[family.type as keyof typeof SUFFIXES] ?? fail(`type: ${family.type}`);
      if (!suffixes.some((suffix) => name + suffix === sample.name)) fail(`a sample of another family: ${line}`);
      const key = `${sample.name} ${JSON.stringify(Object.entries(sample.labels).sort())}`;
      if (seen.has(key)) fail(`twice: ${line}`);
      seen.add(key);
      family.samples.push(sample);
    }
  }
  for (const [of, family] of families) if (family.type === 'histogram') checkHistogram(of, family);
  return families;
}

function sampleOf(line: string, openMetrics: boolean): Sample {
  const [, name = '', labels = '', value = '', exemplar, exemplarValue] = SAMPLE.exec(line) ?? fail(`a line: ${line}`);
  if (exemplar !== undefined) {
    if (!openMetrics || !name.endsWith('_bucket')) fail(`an exemplar is not allowed here: ${line}`);
    const chars = Object.entries(labelsOf(exemplar)).reduce((sum, [key, text]) => sum + key.length + text.length, 0);
    if (chars > 128 || !Number.isFinite(Number(exemplarValue))) fail(`an exemplar of another form: ${line}`);
  }
  const number = value === '+Inf' ? Infinity : Number(value);
  if (Number.isNaN(number) && !/^nan$/i.test(value)) fail(`a value: ${line}`);
  return { name, labels: labelsOf(labels), value: number };
}

function labelsOf(text: string): Record<string, string> {
  const found = [...text.matchAll(LABEL)];
  if (found.map(([whole]) => whole).join('') !== text) fail(`labels: ${text}`);
  return Object.fromEntries(found.map(([, key = '', value = '']) => [key, value]));
}

function checkHistogram(name: string, { samples }: ParsedFamily): void {
  const groups = Map.groupBy(samples, ({ labels: { le, ...rest } }) => JSON.stringify(rest));
  for (const group of groups.values()) {
    const buckets = group.filter((sample) => sample.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels }) => (labels['le'] === '+Inf' ? Infinity : Number(labels['le'])));
    const rises = (list: readonly number[]): boolean =>
      list.every((value, i) => i === 0 || value >= (list[i - 1] ?? 0));
    if (bounds.at(-1) !== Infinity || !rises(bounds) || new Set(bounds).size !== bounds.length)
      fail(`bounds of ${name}`);
    if (!rises(buckets.map(({ value }) => value))) fail(`counts of ${name}`);
    const count = group.find((sample) => sample.name === `${name}_count`)?.value;
    if (count !== buckets.at(-1)?.value) fail(`count of ${name}`);
    if (!group.some((sample) => sample.name === `${name}_sum`)) fail(`sum of ${name}`);
  }
}

function fail(detail: string): never {
  throw new Error(detail);
}
