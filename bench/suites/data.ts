/**
 * Measures the snapshot of a data directory, and a start on the directory. The suite `rpc` measures calls with a data
 * directory.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { startChild } from '../lib/processes.ts';
import type { Sample } from '../lib/numbers.ts';
import { type Goal, type Report, type Table, valueOf } from '../lib/report.ts';
import { Results, type Run } from '../lib/rounds.ts';

/** The number of calls after which the default limits of ended commands and of history are reached. */
const CALLS = 105_000;
type Filling = { readonly name: string; readonly events: number; readonly startSeconds: number };
const DEFAULT_BOUNDS: Filling = { name: '100,000 ended commands, 210,000 rows', events: 0, startSeconds: 2.5 };
/**
 * The contents of data directories: the number of events for each call, and the goal for a start on the directory, in
 * seconds.
 */
const FILLINGS: readonly Filling[] = [
  DEFAULT_BOUNDS,
  { name: '100,000 ended commands, 1,050,000 rows', events: 8, startSeconds: 6 },
];
const MODULE = 'loads/data-directory.ts';
const GC = ['--expose-gc'];
/** The limit of history in rows that exceed the default limits. */
const HISTORY_BYTES = 2 * 1024 * 1024 * 1024;
const SNAPSHOT = z.object({ cpu: z.number(), longestMs: z.number(), bytes: z.number() });

const COLUMNS = [
  { key: 'start', label: 'CPU s of a start' },
  { key: 'heap', label: 'heap after it, to before' },
  { key: 'snapshot', label: 'CPU s of a snapshot' },
  { key: 'slice', label: 'longest slice ms' },
  { key: 'size', label: 'MB of the snapshot' },
  { key: 'call', label: 'journal bytes/call' },
] as const;

export async function data(run: Run): Promise<Report> {
  const results = new Results();
  const fillings = FILLINGS.filter(({ name }) => run.wanted(name));
  for (let round = 0; round < run.pace.rounds; round++) {
    for (const { name, events } of fillings) {
      run.say(`data: round ${round + 1}, ${name}`);
      try {
        results.add(name, await measured(run.quick ? CALLS / 20 : CALLS, events));
      } catch (error) {
        results.fail(name, error);
      }
    }
  }
  const rows = fillings.map(({ name }) => results.row({ name, kind: 'own' }));
  const table: Table = { title: 'A data directory', columns: COLUMNS, rows, by: 'start' };
  const notes = [
    'Calls with params and a result of 200 bytes each are made in one process without sockets, which then writes a snapshot. Another process starts on the directory. Heap includes memory outside V8, after full collections. The first row has the default bounds; in the second there are eight events for each call, and history may take 2 GiB.',
  ];
  return { suite: 'data', tables: [table], goals: goalsOf(table), notes };
}

async function measured(calls: number, events: number): Promise<Sample> {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-bench-'));
  const options = { root: join(folder, 'data'), ...(events > 0 && { historyBytes: HISTORY_BYTES }) };
  try {
    const filled = await fill(options, { calls, events });
    await using child = await startChild(MODULE, { options, execArgv: GC });
    const start = (await child.ask('started', null, z.number())) / 1e6;
    const { heap, external } = await child.memory();
    const { before, ...rest } = filled;
    return { ...rest, start, heap: (heap + external) / before };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function fill(options: object, what: { readonly calls: number; readonly events: number }) {
  await using child = await startChild(MODULE, { options, execArgv: GC });
  const call = await child.ask('fill', what, z.number());
  const { heap, external } = await child.memory();
  const { cpu, longestMs, bytes } = await child.ask('snapshot', null, SNAPSHOT);
  return { call, before: heap + external, snapshot: cpu / 1e6, slice: longestMs, size: bytes / 1e6 };
}

function goalsOf(table: Table): Goal[] {
  const most = (text: string, column: string, bound: number, row = DEFAULT_BOUNDS.name): Goal => ({
    ...{ text, measured: valueOf(table, row, column), at: 'most', bound },
  });
  return [
    ...FILLINGS.map(({ name, startSeconds }) => most(`CPU of a start, s; ${name}`, 'start', startSeconds, name)),
    most('heap after a start, to before', 'heap', 1.1),
    most('longest slice of a snapshot, ms', 'slice', 5),
  ];
}
