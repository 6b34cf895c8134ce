/** Prints the state of the demo's relay from time to time. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createAdmin } from '../clients/admin/index.ts';
import type { Relay } from './relay.ts';

const OUTCOMES = ['completed', 'failed', 'cancelled', 'expired', 'outcome_unknown'] as const;

export type StatusOptions = {
  readonly relay: Relay;
  readonly everyMs: number;
  readonly print: (text: string) => void;
  readonly signal: AbortSignal;
};

/** Prints one status line about the relay every `everyMs` milliseconds until the signal is aborted. Never rejects. */
export async function printStatus({ relay, everyMs, print, signal }: StatusOptions): Promise<void> {
  while (!signal.aborted) {
    await sleep(everyMs, undefined, { signal }).catch(() => {});
    const line = await readStatus(relay, signal).catch(() => null);
    if (line !== null && !signal.aborted) print(`${new Date().toLocaleTimeString('en-GB')}  ${line}\n`);
  }
}

/** Reads the state as an operator would: with the admin client and from the metrics. */
async function readStatus({ url, adminToken }: Relay, signal: AbortSignal): Promise<string> {
  const stoppable: typeof fetch = (to, init) => fetch(to, { ...init, signal });
  const admin = createAdmin({ url, token: adminToken, retries: 0, fetch: stoppable });
  const headers = { authorization: `Bearer ${adminToken}` };
  const [connections, waiting, workers, dedup, metrics] = await Promise.all([
    admin.connections({ first: 1000 }),
    admin.pendingCount(),
    admin.contexts({ filter: { ownership: 'WORKER' }, first: 1000 }),
    admin.dedup({ windowSeconds: 3600 }),
    stoppable(`${url}/metrics`, { headers }).then((response) => response.text()),
  ]);
  const now: Now = {
    connected: connections.nodes.filter(({ status }) => status === 'CONNECTED').length,
    known: connections.nodes.length,
    waiting: waiting.count,
    workers: workers.nodes.length,
    busy: workers.nodes.filter(({ taskId }) => taskId !== null).length,
    seen: dedup.stats.seen,
    duplicates: dedup.stats.duplicates,
  };
  return statusLine(now, metrics);
}

type Now = {
  readonly connected: number;
  readonly known: number;
  readonly waiting: number;
  readonly workers: number;
  readonly busy: number;
  /** The number of messages that the deduplicator saw in the last hour. */
  readonly seen: number;
  readonly duplicates: number;
};

/** Returns the status line. `metrics` is the exposition in Prometheus' text format. */
function statusLine(now: Now, metrics: string): string {
  const ended = OUTCOMES.map((outcome) => {
    const count = total(metrics, `callboard_commands_ended_total{outcome="${outcome}"}`);
    return `${count} ${outcome.replaceAll('_', ' ')}`;
  });
  const late = total(metrics, 'callboard_late_results_total');
  const refused = total(metrics, 'callboard_commands_refused_total{');
  const lost = total(metrics, 'callboard_links_closed_total{');
  return [
    `${now.connected} of ${now.known} connected, ${now.waiting} waiting`,
    ended.join(', '),
    `${refused} refused, ${late} late, ${lost} links lost`,
    `${now.busy} of ${now.workers} workers busy`,
    `${now.duplicates} of ${now.seen} messages were duplicates`,
  ].join(' | ');
}

/** Returns the sum of the samples whose lines begin with `prefix`. */
function total(metrics: string, prefix: string): number {
  const lines = metrics.split('\n').filter((line) => line.startsWith(prefix));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}
