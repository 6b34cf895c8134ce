/** Runs the verb `top`, which prints rates and the busiest clients repeatedly. */
import { GetBusyClientsDocument, type GetBusyClientsQuery } from '../../../generated/cli.ts';
import { sleep } from '../../../clients/link/clock.ts';
import { usageFailure } from '../failure.ts';
import { cellsOf, rowText, type OutputRow } from '../output.ts';
import { readReport, type DeploymentReport } from '../report.ts';
import { tableText } from '../table.ts';
import { readCount, readMs } from '../times.ts';
import type { OperatorRun, RunVerb } from '../verb.ts';

const INTERVAL_MS = 2000;
const INTERVAL_MIN_MS = 500;
const ROWS = 15;
const SHOWN = ['user_id', 'client_id', 'client_type', 'node_id', 'in_flight', 'queued', 'oldest_wait_ms'];
const SORTS = { inflight: 'in_flight', queued: 'queued', wait: 'oldest_wait_ms' } as const;

export const top: RunVerb = async (run) => {
  const { flags, stopped, clock } = run;
  const interval = readMs(flags['interval'], INTERVAL_MS, '--interval');
  if (interval < INTERVAL_MIN_MS) throw usageFailure(`--interval: expected at least ${INTERVAL_MIN_MS}ms`);
  const count = readCount(flags['count'], '--count') ?? Infinity;
  for (let shown = 0; ;) {
    stopped.throwIfAborted();
    const [report, busy] = await Promise.all([readReport(run.relay), run.relay.query(GetBusyClientsDocument, {})]);
    print(run, report, busiest(busy, flags['sort'] ?? 'inflight'));
    if (++shown >= count) return;
    await sleep(clock, interval, stopped);
  }
};

function print({ io, output }: OperatorRun, report: DeploymentReport, clients: readonly OutputRow[]): void {
  if (output === 'ids') return io.print(clients.map((row) => rowText(row, 'ids', { id: SHOWN.slice(0, 2) })).join(''));
  if (output !== 'table') return io.print(`${JSON.stringify({ ...report, clients })}\n`);
  const table = tableText(
    SHOWN,
    clients.map((row) => cellsOf(row, SHOWN)),
  );
  io.clearScreen?.();
  io.print(`${headText(report)}\n${table}${io.clearScreen ? '' : '\n'}`);
}

function headText(report: DeploymentReport): string {
  const { label, version, mode, nodes, links, unfinished_commands, calls_per_second, p50_ms, p99_ms } = report;
  const ends = Object.entries(report.ended_last_minute).map(([outcome, count]) => `${outcome} ${count}`);
  const wait = report.oldest_wait === null ? '' : `, oldest ${report.oldest_wait_ms} ms: ${report.oldest_wait}`;
  return [
    `callboard ${version}${label === null ? '' : ` (${label})`}, ${mode}: nodes ${nodes}, links ${links}, unfinished ${unfinished_commands}`,
    `calls/s ${calls_per_second}, p50 ${p50_ms ?? '-'} ms, p99 ${p99_ms ?? '-'} ms; last minute: ${ends.join(', ') || 'none ended'}`,
    `waits ${report.waits}${wait}`,
    ...report.needs_attention.map((fault) => `needs attention: ${fault}`),
    '',
  ].join('\n');
}

/** Returns the clients with most work, at most ROWS. */
function busiest({ connections, pendingRpcs }: GetBusyClientsQuery, sort: string): readonly OutputRow[] {
  const waits = new Map<string, number>();
  for (const { user_id, client_id, age_ms } of pendingRpcs.items) {
    const key = `${user_id}/${client_id}`;
    waits.set(key, Math.max(age_ms, waits.get(key) ?? 0));
  }
  const rows = connections.items.map((row) => ({
    ...row,
    oldest_wait_ms: waits.get(`${row.user_id}/${row.client_id}`) ?? null,
  }));
  const by = Object.entries(SORTS).find(([name]) => name === sort)?.[1] ?? SORTS.inflight;
  return rows.toSorted((a, b) => (b[by] ?? 0) - (a[by] ?? 0)).slice(0, ROWS);
}
