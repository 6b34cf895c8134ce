/** Reads the state of a deployment for `status`, `top` and `doctor`: figures, and what needs a person's attention. */
import { GetStatusDocument, type GetStatusQuery } from '../../generated/cli.ts';
import type { OperatorRelay } from './relay.ts';

const WINDOW_SECONDS = 60;
const SERIES = ['commands_ended', 'command_p50', 'command_p99'];
/**
 * The age from which a waiting caller needs attention, in milliseconds. Callers wait at most ten minutes; this is half
 * of that.
 */
const LONG_WAIT_MS = 300_000;

type Ends = Readonly<Record<string, number>>;

export type DeploymentReport = {
  readonly label: string | null;
  readonly version: string;
  readonly mode: string;
  readonly node_id: string;
  readonly nodes: number;
  readonly links: number;
  readonly unfinished_commands: number;
  /** The number of commands that ended per second, averaged over the last minute. */
  readonly calls_per_second: number;
  readonly ended_last_minute: Ends;
  /**
   * The median duration of calls in milliseconds, over the latest seconds in which commands ended; null if none ended
   * within a minute.
   */
  readonly p50_ms: number | null;
  readonly p99_ms: number | null;
  readonly waits: number;
  readonly oldest_wait_ms: number | null;
  readonly oldest_wait: string | null;
  /** What a person should look at; empty if all is well. */
  readonly needs_attention: readonly string[];
};

/** Reads the state of the deployment from the relay. Administrators only. Throws OperatorFailure. */
export async function readReport(relay: OperatorRelay): Promise<DeploymentReport> {
  const variables = { series: SERIES, window_seconds: WINDOW_SECONDS, step_seconds: WINDOW_SECONDS };
  return reportOf(await relay.query(GetStatusDocument, variables));
}

function reportOf(status: GetStatusQuery): DeploymentReport {
  const { server, delivery, waits, oldest_wait, series } = status;
  const nodes = delivery.nodes.items;
  const ends = endsOf(series.items);
  const [oldest] = oldest_wait.items;
  const { label, version, mode, node_id } = server;
  return {
    ...{ label, version, mode, node_id },
    nodes: nodes.length,
    links: sum(nodes.map(({ links }) => links)),
    unfinished_commands: sum(nodes.map(({ unfinished_commands }) => unfinished_commands)),
    calls_per_second: rounded(sum(Object.values(ends)) / WINDOW_SECONDS, 2),
    ended_last_minute: ends,
    p50_ms: quantileOf(series.items, 'command_p50'),
    p99_ms: quantileOf(series.items, 'command_p99'),
    waits: waits.count,
    oldest_wait_ms: oldest?.age_ms ?? null,
    oldest_wait: oldest ? `${oldest.user_id}/${oldest.client_id}/${oldest.command_id}` : null,
    needs_attention: [...nodeFaults(status), ...deliveryFaults(status)],
  };
}

function nodeFaults({ delivery }: GetStatusQuery): readonly string[] {
  return delivery.nodes.items.flatMap(({ node_id, stale, mailbox_listener_alive, reconciliation_alive }) => [
    ...(stale ? [`node ${node_id} is silent`] : []),
    ...(!stale && !mailbox_listener_alive ? [`node ${node_id} does not read its mailbox`] : []),
    ...(!stale && !reconciliation_alive ? [`node ${node_id} does not end overdue commands`] : []),
  ]);
}

function deliveryFaults({ delivery, oldest_wait, series, waits }: GetStatusQuery): readonly string[] {
  const full = delivery.tenants.items.filter(
    ({ limit, reserved_commands }) => limit !== null && reserved_commands >= limit,
  );
  const [oldest] = oldest_wait.items;
  const seen = [delivery.nodes.completeness, waits.completeness, series.completeness];
  return [
    ...full.map(({ scope_id, limit }) => `the admission scope ${scope_id} is full (${limit})`),
    ...(delivery.summary.due_commands > 0 ? [`${delivery.summary.due_commands} commands are overdue`] : []),
    ...(oldest && oldest.age_ms >= LONG_WAIT_MS ? [`a caller has waited ${Math.round(oldest.age_ms / 1000)} s`] : []),
    ...(seen.every(({ complete }) => complete) ? [] : ['a part of the deployment did not answer']),
  ];
}

type SeriesItem = GetStatusQuery['series']['items'][number];

function endsOf(items: readonly SeriesItem[]): Ends {
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
