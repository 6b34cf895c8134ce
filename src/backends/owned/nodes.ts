/**
 * Core's NodeStore for a process that owns partitions: the nodes of the deployment, and the mailbox of its own node.
 *
 * The leases tell which nodes exist and when they reported. Their reports are read from Redis on demand.
 */
import { gapOf, type ObservedSource } from '../../core/completeness.ts';
import type {
  DispatcherNode,
  MailboxRow,
  NodeListener,
  NodeReport,
  NodeStore,
} from '../../core/commands/node-store.ts';
import type { Connection } from '../../core/connections/connection.ts';
import { NODE_GONE_MS, NODE_SILENT_MS } from '../../core/limits.ts';
import { thenDo, type MaybePromise } from '../../core/maybe-promise.ts';
import type { Clock, Log } from '../../core/ports.ts';
import { Mailboxes } from '../memory/commands.ts';
import { unavailable } from '../redis/client.ts';
import { decode, encode } from './encoding.ts';
import { nodeOf } from './fence.ts';
import type { Dependency } from './mail.ts';

type NodesOptions = {
  readonly process: string;
  readonly nodeId: string;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Log;
  /** The living processes, with the time of their last report; null if they have made none. */
  readonly alive: () => ReadonlyMap<string, number | null>;
  /** The living processes by node id, as this process has seen them last. */
  readonly processes: () => ReadonlyMap<string, string>;
  /** Reads which processes have a lease. Rejects if Redis does not answer. */
  readonly livingNow: () => Promise<readonly string[]>;
  /** Stores the report of this process and its time. `isDraining`: the relay accepts no more links. */
  readonly report: (text: string, at: number, isDraining: boolean) => void;
  /** Reads the last report of each process; null if there is none. Rejects if Redis does not answer. */
  readonly reportsOf: (processes: readonly string[]) => Promise<readonly (string | null)[]>;
  /** Sends a mailbox row to a process, which may be this one. */
  readonly send: (process: string, row: string, after: Dependency) => void;
};

/** A node that has reported, with its process and the time of the report. */
type KnownNode = { readonly nodeId: string; readonly process: string; readonly updatedAt: number };
/** A node whose process ended without releasing its lease. `until`: when it is no longer listed. */
type GoneNode = KnownNode & { readonly until: number };

export class Nodes {
  readonly #options: NodesOptions;
  readonly #own = new Mailboxes();
  readonly #gone = new Map<string, GoneNode>();
  #listener: NodeListener | null = null;
  #report: DispatcherNode | null = null;

  constructor(options: NodesOptions) {
    this.#options = options;
  }

  /** The methods of NodeStore that concern this process only. */
  get store(): Omit<NodeStore, 'due'> {
    return {
      attach: (nodeId, listener) => this.#attach(nodeId, listener),
      beat: (nodeId, report) => this.#beat(nodeId, report),
      post: (nodeId, row) => this.#post(nodeId, row),
      get: (nodeId) => {
        const known = this.#all().find((node) => node.nodeId === nodeId);
        return known === undefined ? null : thenDo(this.#read([known]), ([report]) => report ?? null);
      },
      silent: () => this.#silent(),
      reportTimes: () => this.#all(),
      living: () => this.#living(),
      list: (page) => {
        const after = page.after?.[0] ?? '';
        const known = this.#all().filter(({ nodeId }) => nodeId > after);
        const shown = known.slice(0, page.first);
        const next = known.length > shown.length ? [shown.at(-1)?.nodeId ?? after] : null;
        return thenDo(this.#read(shown), (reports) => ({
          rows: reports.flatMap((row) => (row === null ? [] : { row, position: [row.nodeId] })),
          next,
          gaps: shown.flatMap(({ nodeId }, i) => (reports[i] === null ? this.#lostReport(nodeId) : [])),
        }));
      },
    };
  }

  async #living(): Promise<readonly string[]> {
    try {
      return (await this.#options.livingNow()).map(nodeOf);
    } catch (error) {
      throw unavailable(error);
    }
  }

  /** Returns mailboxes for the rows that a partition posts. A row is sent once the act that posted it is recorded. */
  mailboxesOf(partition: number): Mailboxes {
    return new SentMailboxes((nodeId, row) => this.#postRow(nodeId, row, partition));
  }

  /** Handles a mailbox row that another process sent. */
  receive(text: string): void {
    // The text was written by `encode` from a MailboxRow.
    this.#own.post(this.#options.nodeId, decode(text) as MailboxRow);
  }

  /**
   * Called when another process becomes the owner of the partition of some users. Their waiters and links must be made
   * known to it.
   */
  moved(concerns: (userId: string) => boolean): void {
    this.#listener?.moved?.(concerns);
  }

  /** Called when the store has lost data of these users for good. */
  forgotten(concerns: (userId: string) => boolean): void {
    this.#listener
      ?.lost('store_lost', concerns)
      .catch((error: unknown) => this.#options.log.error({ err: error }, 'a loss of the store could not be handled'));
  }

  /** Called when other processes may have treated this one as dead, and its links as lost. */
  revived(): void {
    this.#listener?.revived();
  }

  /** Passes on connections that are lost because their process is gone. */
  linksLost(connections: readonly Connection[]): void {
    if (connections.length > 0) this.#listener?.linksLost(connections);
  }

  /** Keeps the node of a dead process in listings for a while. */
  noteGone(process: string, updatedAt: number): void {
    const nodeId = nodeOf(process);
    this.#gone.set(nodeId, { nodeId, process, updatedAt, until: this.#options.clock.now() + NODE_GONE_MS });
  }

  #attach(nodeId: string, listener: NodeListener): () => void {
    const close = this.#own.open(nodeId, listener);
    this.#listener = listener;
    return () => {
      close();
      this.#listener = null;
      this.#report = null;
    };
  }

  #beat(nodeId: string, report: NodeReport): void {
    if (!this.#own.has(nodeId)) return;
    this.#report = { ...report, nodeId, updatedAt: this.#options.clock.now() };
    this.#options.report(encode(this.#report), this.#report.updatedAt, report.draining);
  }

  #post(nodeId: string, row: MailboxRow): boolean {
    if (row.kind !== 'pulse') return this.#postRow(nodeId, row, 'all');
    // The row is sent through Redis, so that its arrival proves that mail arrives.
    this.#options.send(this.#options.process, encode(row), null);
    return true;
  }

  #postRow(nodeId: string, row: MailboxRow, after: Dependency): boolean {
    if (nodeId === this.#options.nodeId) return this.#own.post(nodeId, row);
    const process = this.#options.processes().get(nodeId);
    if (process === undefined) return false;
    this.#options.send(process, encode(row), after);
    return true;
  }

  /** Returns all nodes that have reported, sorted by id. */
  #all(): readonly KnownNode[] {
    const { alive, processes, process, nodeId, clock } = this.#options;
    const now = clock.now();
    for (const [id, { until }] of this.#gone) if (until <= now || processes().has(id)) this.#gone.delete(id);
    const others = [...alive()].flatMap(([id, updatedAt]) =>
      id === process || updatedAt === null ? [] : [{ nodeId: nodeOf(id), process: id, updatedAt }],
    );
    const own = this.#report === null ? [] : [{ nodeId, process, updatedAt: this.#report.updatedAt }];
    return [...own, ...others, ...this.#gone.values()].sort((a, b) => (a.nodeId < b.nodeId ? -1 : 1));
  }

  /** Reads the reports of nodes, in the same order; null if Redis has lost a report. */
  #read(nodes: readonly KnownNode[]): MaybePromise<readonly (DispatcherNode | null)[]> {
    const others = nodes.map(({ process }) => process).filter((process) => process !== this.#options.process);
    const reports = others.length === 0 ? [] : this.#options.reportsOf(others);
    return thenDo(reports, (texts) => {
      const found = new Map(others.map((process, i) => [process, texts[i] ?? null]));
      return nodes.map(({ process }) => {
        if (process === this.#options.process) return this.#report;
        const text = found.get(process) ?? null;
        // The text was written by `encode` from a DispatcherNode.
        return text === null ? null : (decode(text) as DispatcherNode);
      });
    });
  }

  #lostReport(nodeId: string): ObservedSource {
    return gapOf('delivery', this.#options.clock.now(), nodeId, 'evicted');
  }

  #silent(): readonly string[] {
    const since = this.#options.clock.now() - NODE_SILENT_MS;
    return this.#all().flatMap(({ nodeId, updatedAt }) => (updatedAt <= since ? [nodeId] : []));
  }
}

/** Mailboxes whose rows are sent by a function instead of delivered here. */
class SentMailboxes extends Mailboxes {
  readonly #post: (nodeId: string, row: MailboxRow) => boolean;

  constructor(post: (nodeId: string, row: MailboxRow) => boolean) {
    super();
    this.#post = post;
  }

  override post(nodeId: string, row: MailboxRow): boolean {
    return this.#post(nodeId, row);
  }
}
