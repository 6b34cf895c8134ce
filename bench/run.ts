/** `npm run bench` measures this relay and its peers, and prints the result for each goal. */
import { parseArgs } from 'node:util';
import { installPeers } from './lib/install.ts';
import { printed } from './lib/print.ts';
import { machine, writeSection } from './lib/figures.ts';
import { isMet, type Report } from './lib/report.ts';
import { PACE, QUICK, type Run } from './lib/rounds.ts';

/** The suites by name. They are imported only after the peers are installed. */
const SUITES: Readonly<Record<string, () => Promise<(run: Run) => Promise<Report>>>> = {
  query: async () => (await import('./suites/query.ts')).query,
  fanout: async () => (await import('./suites/fanout.ts')).fanout,
  rpc: async () => (await import('./suites/rpc.ts')).rpc,
  durable: async () => (await import('./suites/durable.ts')).durable,
  data: async () => (await import('./suites/data.ts')).data,
  takeover: async () => (await import('./suites/takeover.ts')).takeover,
  memory: async () => (await import('./suites/memory.ts')).memory,
  metrics: async () => (await import('./suites/metrics.ts')).metrics,
  parts: async () => (await import('./suites/parts.ts')).parts,
  growth: async () => (await import('./suites/growth.ts')).growth,
};

const HELP = `npm run bench [-- <suite>...] [--quick] [--json] [--write] [--only <text>] [--rounds <n>] [--ms <n>]

Suites: ${Object.keys(SUITES).join(', ')}; all, when none is named.
  --quick      one short round, to see that it works
  --only a,b   only rows whose name contains one of these; goals need the rows that they compare
  --rounds n   rounds (${PACE.rounds}), of which the median counts
  --ms n       length of one timed part (${PACE.timedMs})
  --json       one JSON text instead of tables
  --write      keep the figures: each suite's section of docs/measurements.md, and the plots of growth. Sections are
               replaced as a whole, so --quick and --only are refused, except --only for growth
`;

const say = (text: string): void => {
  process.stderr.write(`${(performance.now() / 1000).toFixed(0).padStart(4)} s  ${text}\n`);
};

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
      only: { type: 'string' },
      rounds: { type: 'string' },
      ms: { type: 'string' },
    },
  });
  const unknown = positionals.filter((name) => !Object.hasOwn(SUITES, name));
  if (values.help || unknown.length > 0) return void process.stdout.write(HELP);
  const names = positionals.length > 0 ? positionals : Object.keys(SUITES);
  const isPart = values.only !== undefined && names.some((name) => name !== 'growth');
  if (values.write && (values.quick || isPart)) {
    process.stderr.write('--write replaces whole sections: leave out --quick, and --only except for growth\n');
    process.exitCode = 2;
    return;
  }
  installPeers(say);
  const base = values.quick ? QUICK : PACE;
  const only = values.only?.split(',');
  const run: Run = {
    pace: { ...base, rounds: Number(values.rounds ?? base.rounds), timedMs: Number(values.ms ?? base.timedMs) },
    quick: values.quick,
    write: values.write,
    wanted: (name) => !only || only.some((part) => name.includes(part)),
    say,
  };
  if (!values.json)
    process.stdout.write(
      `${machine()}, Node ${process.version}, ${run.pace.rounds} rounds of ${run.pace.timedMs} ms\n\n`,
    );
  const reports: Report[] = [];
  for (const name of names) {
    const suite = await SUITES[name]?.();
    if (!suite) continue;
    const report = await suite(run);
    reports.push(report);
    if (!values.json) process.stdout.write(`${printed(report)}\n`);
    if (values.write) await keep(report, run);
  }
  if (values.json) process.stdout.write(`${JSON.stringify(machineReadable(reports, run), null, 2)}\n`);
}

function machineReadable(reports: readonly Report[], { pace, quick }: Run): object {
  const goals = reports.flatMap((report) =>
    report.goals.map((goal) => ({ suite: report.suite, ...goal, met: isMet(goal) })),
  );
  return { machine: machine(), node: process.version, pace, quick, reports, goals };
}

/** Writes the results of a suite into the documentation, except for the suite `growth`, which writes its own. */
async function keep(report: Report, { pace }: Run): Promise<void> {
  if (report.suite === 'growth') return;
  const text = printed({ ...report, suite: '' }).replace(/^## *\n+/, '');
  await writeSection(report.suite, { how: `${pace.rounds} rounds of ${pace.timedMs} ms`, text });
}

await main();
