/** Runs the verbs about the relay itself: `status`, `top`, `nodes`, `capacity` and `doctor`. */
import {
  GetBusyClientsDocument,
  GetServerDocument,
  GetStatusDocument,
  type DispatcherNodeReportFragment,
  type GetBusyClientsQuery,
  type GetStatusQuery,
} from '../../../generated/cli.ts';
import { sleep } from '../../clients/link/platform.ts';
import { visibleLine } from '../../protocol/visible-text.ts';
import { VERSION } from '../../version.ts';
import { confirmed } from '../arguments.ts';
import { contextsPath, readContexts } from '../contexts-file.ts';
import { pathOf, type OperatorRelay } from '../relay.ts';
import { OperatorFailure, usageFailure, EXIT, type ExitCode } from '../exit-codes.ts';
import { durationText, readCount, readMs } from '../amounts.ts';
import { alignedText, cellOf, type OutputRow } from '../columns.ts';
import { listing, wholePage } from '../listing.ts';
import type { OperatorRun, RunVerb } from '../verb.ts';
import { listText, objectText } from '../output.ts';

export const status: RunVerb = async ({ relay, io, output }) => {
  const report = await readReport(relay);
  io.print(output === 'table' ? statusText(report) : objectText(report, output, { id: ['node_id'] }));
  if (report.needs_attention.length === 0) return EXIT.done;
  for (const fault of report.needs_attention) io.complain(`Needs attention: ${fault}.\n`);
  return EXIT.failed;
};

// Reads the state of the deployment for `status`, `top` and `doctor`: figures, and problems that need a person's
// attention.

const WINDOW_SECONDS = 60;
const SERIES = ['commands_ended', 'command_p50', 'command_p99'];
/** A caller that waits longer than this needs attention, in milliseconds: half of the longest wait. */
const LONG_WAIT_MS = 300_000;

type DeploymentReport = ReturnType<typeof reportOf>;

/** Reads the state of the deployment from the relay. For administrators only. Throws OperatorFailure. */
async function readReport(relay: OperatorRelay): Promise<DeploymentReport> {
  const variables = { series: SERIES, window_seconds: WINDOW_SECONDS, step_seconds: WINDOW_SECONDS };
  return reportOf(await relay.query(GetStatusDocument, variables));
}

function reportOf(status: GetStatusQuery) {
  const { server, delivery, waits, oldest_wait, series } = status;
  const nodes = delivery.nodes.items;
  const ends = endsOf(series.items);
  const [oldest] = oldest_wait.items;
  const { label, version, mode, node_id } = server;
  return {
    label,
    version,
    mode,
    node_id,
    nodes: nodes.length,
    versions: versionsOf(nodes),
    links: sum(nodes.map(({ links }) => links)),
    unfinished_commands: sum(nodes.map(({ unfinished_commands }) => unfinished_commands)),
    /** The number of commands that ended per second, averaged over the last minute. */
    calls_per_second: rounded(sum(Object.values(ends)) / WINDOW_SECONDS, 2),
    ended_last_minute: ends,
    /** The median duration in the last minute, in milliseconds; null if no command ended. */
    p50_ms: quantileOf(series.items, 'command_p50'),
    p99_ms: quantileOf(series.items, 'command_p99'),
    waits: waits.count,
    oldest_wait_ms: oldest?.age_ms ?? null,
    oldest_wait: oldest ? addressOf(oldest) : null,
    /** The problems that a person should look at; empty if there are none. */
    needs_attention: [...nodeFaults(status), ...deliveryFaults(status)],
  };
}

/** Returns the nodes that report, grouped by version. A node of an old version does not report its version. */
function versionsOf(nodes: readonly DispatcherNodeReportFragment[]): Readonly<Record<string, readonly string[]>> {
  const reporting = nodes.filter(({ stale }) => !stale);
  const byVersion = Map.groupBy(reporting, ({ version }) => version ?? 'not reported');
  return Object.fromEntries([...byVersion].map(([version, some]) => [version, some.map(({ node_id }) => node_id)]));
}

/** Says which nodes run which version; null if all nodes run the same version. */
function versionsText({ versions }: DeploymentReport): string | null {
  const entries = Object.entries(versions);
  if (entries.length < 2) return null;
  return `differ: ${entries.map(([version, nodes]) => `${nodes.join(', ')} ${version}`).join('; ')}`;
}

type CallIds = Readonly<Record<'user_id' | 'client_id' | 'command_id', string>>;

function addressOf({ user_id, client_id, command_id }: CallIds): string {
  return `${user_id}/${client_id}/${command_id}`;
}

/** Returns the report as lines for people, with only the number of problems. */
function statusText(report: DeploymentReport): string {
  const { label, version, mode, node_id, needs_attention: faults } = report;
  const versions = versionsText(report);
  const lines = [
    ['relay', `callboard ${version}${label === null ? '' : ` (${label})`}, ${mode} mode; ${node_id} answered`],
    ['nodes', `${report.nodes}`],
    ...(versions === null ? [] : [['versions', versions]]),
    ['links', `${report.links}`],
    ['calls', `in progress ${report.unfinished_commands}, ended per second ${report.calls_per_second}`],
    ['last minute', endsText(report)],
    ['duration', quantilesText(report)],
    ['callers waiting', waitsText(report)],
    ['needs attention', faults.length === 0 ? 'nothing' : `${faults.length}, named below`],
  ];
  return alignedText(lines.map((line) => line.map(cellOf)));
}

function endsText({ ended_last_minute }: DeploymentReport): string {
  const ends = Object.entries(ended_last_minute).map(([outcome, count]) => `${outcome.replace('_', ' ')} ${count}`);
  return ends.join(', ') || 'none ended';
}

function quantilesText({ p50_ms, p99_ms }: DeploymentReport): string {
  return p50_ms === null ? 'none ended in the last minute' : `p50 ${p50_ms} ms, p99 ${p99_ms ?? '-'} ms`;
}

function waitsText({ waits, oldest_wait_ms, oldest_wait }: DeploymentReport): string {
  return oldest_wait_ms === null
    ? `${waits}`
    : `${waits}, the oldest for ${durationText(oldest_wait_ms)}: ${oldest_wait}`;
}

function nodeFaults({ delivery }: GetStatusQuery): readonly string[] {
  const { items } = delivery.nodes;
  const digests = new Set(items.flatMap(({ stale, policy_digest }) => (stale ? [] : (policy_digest ?? []))));
  const differ = digests.size > 1 ? [`nodes run different policies: ${[...digests].join(', ')}`] : [];
  const faults = items.flatMap(({ node_id, stale, mailbox_listener_alive, reconciliation_alive, policy_fault }) => [
    ...(stale ? [`node ${node_id} is silent: it has stopped, or cannot reach the store`] : []),
    ...(!stale && !mailbox_listener_alive ? [`node ${node_id} takes no work from other nodes: restart it`] : []),
    ...(!stale && !reconciliation_alive ? [`node ${node_id} no longer ends overdue calls: restart it`] : []),
    ...(!stale && policy_fault !== null ? [`node ${node_id} does not use its policy file: ${policy_fault}`] : []),
  ]);
  return [...faults, ...differ];
}

function deliveryFaults({ delivery, oldest_wait, series, waits }: GetStatusQuery): readonly string[] {
  const full = delivery.tenants.items.filter(
    ({ limit, reserved_commands }) => limit !== null && reserved_commands >= limit,
  );
  const [oldest] = oldest_wait.items;
  const seen = [delivery.nodes.completeness, waits.completeness, series.completeness];
  return [
    ...full.map(({ scope_id, limit }) => `the scope ${scope_id} has ${limit} live calls, and more are refused`),
    ...(delivery.summary.due_commands > 0
      ? [`calls past their deadline that have not ended: ${delivery.summary.due_commands}`]
      : []),
    ...(oldest && oldest.age_ms >= LONG_WAIT_MS
      ? [`a caller has waited ${durationText(oldest.age_ms)} for ${addressOf(oldest)}`]
      : []),
    ...(seen.every(({ complete }) => complete) ? [] : ['a part of the deployment did not answer, and is not counted']),
  ];
}

type SeriesItem = GetStatusQuery['series']['items'][number];

function endsOf(items: readonly SeriesItem[]): Readonly<Record<string, number>> {
  const ended = items.filter(({ name }) => name === 'commands_ended');
  const counts = ended.map(({ label, points }) => [label ?? 'ended', sum(points.map((point) => point ?? 0))] as const);
  return Object.fromEntries(counts.filter(([, count]) => count > 0));
}

function quantileOf(items: readonly SeriesItem[], name: string): number | null {
  const points = items.find((item) => item.name === name)?.points ?? [];
  const seconds = points.findLast((point) => typeof point === 'number');
  return seconds === undefined ? null : rounded(seconds * 1000, 1);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

const INTERVAL_MS = 2000;
const INTERVAL_MIN_MS = 500;
const ROWS = 15;
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
  if (output === 'json' || output === 'jsonl') return io.print(`${JSON.stringify({ ...report, clients })}\n`);
  const list = listText({ items: clients }, output, {
    shown: ['user_id', 'client_id', 'client_type', 'node_id', 'in_flight', 'queued', 'oldest_wait_ms'],
    id: ['user_id', 'client_id'],
  });
  if (output === 'ids') return io.print(list);
  io.clearScreen?.();
  io.print(`${headText(report)}\n${list}${io.clearScreen ? '' : '\n'}`);
}

function headText(report: DeploymentReport): string {
  const faults = report.needs_attention.map((fault) => `${visibleLine(`needs attention: ${fault}`)}\n`);
  return `${statusText(report)}${faults.join('')}`;
}

/** Returns the first clients in the order that `sort` names, at most ROWS. */
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

const DRAIN_MS = 10_000;

export const nodesLs = listing<DispatcherNodeReportFragment>('/delivery/nodes', {
  shown: [
    ...['node_id', 'version', 'up', 'links', 'unfinished_commands', 'memory', 'loop_delay'],
    ...['policy_digest', 'stale', 'draining', 'updated_at'],
  ],
  id: ['node_id'],
  row: (node) => ({ ...node, ...processFacts(node) }),
});

/** Returns the figures of a node's process from its last report, as texts; null if it did not report them. */
function processFacts({ started_at, updated_at, memory_bytes, event_loop_delay_ms }: DispatcherNodeReportFragment) {
  return {
    up: started_at === null ? null : durationText(Date.parse(updated_at) - Date.parse(started_at)),
    memory: memory_bytes === null ? null : `${Math.round(memory_bytes / 1e6)} MB`,
    loop_delay: event_loop_delay_ms === null ? null : `${event_loop_delay_ms} ms`,
  };
}

export const capacityLs = listing('/delivery/tenants', {
  shown: ['scope_id', 'reserved_commands', 'limit', 'oldest_deadline'],
  id: ['scope_id'],
});

export const nodesDrain: RunVerb = async (run) => {
  const [node_id = ''] = run.args;
  const body = { within_ms: readMs(run.flags['within'], DRAIN_MS, '--within'), reason: run.flags['reason'] };
  await confirmed(run, `Draining ${node_id}`, node_id);
  const node = await run.relay.read(`/delivery/nodes${pathOf(node_id)}/drain`, { method: 'POST', body });
  run.io.print(objectText(node, run.output, { id: ['node_id'] }));
};

type Check = { readonly check: string; readonly verdict: 'ok' | 'warning' | 'fault'; readonly detail: string };

/** If a token expires sooner than this, `doctor` warns. In milliseconds. */
const EXPIRES_SOON_MS = 600_000;

/**
 * Runs checks in order, because each depends on those before it. The first failure ends the run and determines the exit
 * code.
 */
export const doctor: RunVerb = async (run) => {
  const checks: Check[] = [];
  let exit: ExitCode = EXIT.done;
  try {
    for await (const check of checksOf(run)) checks.push(check);
    if (checks.some(({ verdict }) => verdict === 'fault')) exit = EXIT.failed;
  } catch (error) {
    if (!(error instanceof OperatorFailure)) throw error;
    checks.push({ check: nameOf(error), verdict: 'fault', detail: `${error.code}: ${error.message}` });
    exit = error.exit;
  }
  run.io.print(listText(wholePage(checks), run.output, { shown: ['check', 'verdict', 'detail'], id: ['check'] }));
  return exit;
};

async function* checksOf({ relay, io, clock }: OperatorRun): AsyncGenerator<Check> {
  const warnIf = (bad: boolean): Check['verdict'] => (bad ? 'warning' : 'ok');
  const { contexts } = await readContexts(io.env);
  yield {
    check: 'contexts',
    verdict: 'ok',
    detail: `${Object.keys(contexts).length} in ${contextsPath(io.env) ?? 'no folder'}`,
  };
  const { url, urlFrom, token, tokenFrom } = await relay.settings();
  yield { check: 'address', verdict: warnIf(isExposed(url)), detail: `${url} (${urlFrom})` };
  await token();
  yield { check: 'token source', verdict: 'ok', detail: String(tokenFrom) };
  const { status } = await relay.request('/readyz', { repeatable: false });
  const ready = status === 200 ? 'ready' : `answers, and takes no new work (HTTP ${status})`;
  yield { check: 'relay', verdict: warnIf(status !== 200), detail: ready };
  const { server, viewer } = await relay.query(GetServerDocument, {});
  const { kind, user_id, scopes, expires_at } = viewer;
  const who = kind === 'admin' ? 'an administrator' : `the user ${user_id} (${scopes.join(', ') || 'no scopes'})`;
  const left = expires_at === null ? Infinity : Date.parse(expires_at) - clock.now();
  const until = expires_at === null ? '' : `, until ${expires_at}`;
  yield { check: 'token', verdict: warnIf(left < EXPIRES_SOON_MS), detail: `${who}${until}` };
  const same = server.version === VERSION;
  const versions = same ? VERSION : `the relay is ${server.version}, this command line ${VERSION}`;
  yield { check: 'version', verdict: warnIf(!same), detail: versions };
  if (kind !== 'admin') return;
  const report = await readReport(relay);
  const { needs_attention: faults } = report;
  if (faults.length === 0) yield { check: 'deployment', verdict: 'ok', detail: 'nothing needs attention' };
  else yield { check: 'deployment', verdict: 'fault', detail: faults.join('; ') };
  const differing = versionsText(report);
  if (differing !== null) yield { check: 'versions of the nodes', verdict: 'warning', detail: `they ${differing}` };
}

/** Whether the token would be sent over plain HTTP to another machine, so that others could read it. */
function isExposed(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !['127.0.0.1', '[::1]', 'localhost'].includes(hostname);
}

function nameOf({ exit }: OperatorFailure): string {
  if (exit === EXIT.usage) return 'settings';
  if (exit === EXIT.notAllowed) return 'token';
  return 'relay';
}
