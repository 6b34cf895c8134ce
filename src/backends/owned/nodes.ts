/** The nodes of a deployment as a process that owns partitions sees them, and the mailbox of its own node. */
import type { DispatcherNode, MailboxRow, NodeListener, NodeReport, NodeStore } from '../../core/commands/stores.ts';
import type { Connection } from '../../core/connections/connection.ts';
import { NODE_GONE_MS, NODE_SILENT_MS } from '../../core/limits.ts';
import { scanSorted } from '../../core/page.ts';
import type { Clock, Log } from '../../core/ports.ts';
import { Mailboxes } from '../memory/commands.ts';
import { decode, encode } from './encoding.ts';
import type { Dependency } from './mail.ts';

type NodesParts = {
  readonly process: string;
  readonly nodeId: string;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Log;
  /** The other living processes, and what they report of themselves. */
  readonly alive: () => ReadonlyMap<string, string>;
  /** The living processes, by the ids of their nodes. */
  readonly processes: () => ReadonlyMap<string, string>;
  /** Sets what this process reports. `isDraining`: it takes no more links. */
  readonly report: (text: string, isDraining: boolean) => void;
  /** Sends a row to the node of another process, or to that of this one. */
  readonly send: (process: string, row: string, after: Dependency) => void;
};

/** A node whose process has ended without a release. `until`: until when it is listed. */
type GoneNode = { readonly node: DispatcherNode; readonly until: number };

export class Nodes {
  readonly #parts: NodesParts;
  readonly #own = new Mailboxes();
  readonly #gone = new Map<string, GoneNode>();
  #listener: NodeListener | null = null;
  #report: DispatcherNode | null = null;

  constructor(parts: NodesParts) {
    this.#parts = parts;
  }

  /** The methods that concern this process alone. */
  get store(): Omit<NodeStore, 'due'> {
    return {
      attach: (nodeId, listener) => this.#attach(nodeId, listener),
      beat: (nodeId, report) => this.#beat(nodeId, report),
      post: (nodeId, row) => this.#post(nodeId, row),
      get: (nodeId) => this.#all().find((node) => node.nodeId === nodeId) ?? null,
      silent: () => this.#silent(),
      list: (page) => {
        const after = page.after?.[0] ?? '';
        const rows = this.#all().filter(({ nodeId }) => nodeId > after);
        return scanSorted(rows, page, ({ nodeId }) => [nodeId]);
      },
    };
  }

  /** The mailboxes as a partition sees them: its rows leave once what they follow from is recorded. */
  mailboxesOf(partition: number): Mailboxes {
    return new SentMailboxes((nodeId, row) => this.#postRow(nodeId, row, partition));
  }

  /** Takes a row that another process has sent. */
  receive(text: string): void {
    // Only `encode` writes the texts of rows.
    this.#own.post(this.#parts.nodeId, decode(text) as MailboxRow);
  }

  /** Another process owns the partition of some users: waits and links of these users must be made known to it. */
  moved(concerns: (userId: string) => boolean): void {
    this.#listener?.moved?.(concerns);
  }

  /** The store has forgotten something of these users for good. */
  forgotten(concerns: (userId: string) => boolean): void {
    this.#listener
      ?.lost('store_lost', concerns)
      .catch((error: unknown) => this.#parts.log.error({ err: error }, 'a loss of the store could not be handled'));
  }

  /** Tells of links that are lost, because their process is gone. */
  linksLost(connections: readonly Connection[]): void {
    if (connections.length > 0) this.#listener?.linksLost(connections);
  }

  /** Remembers for a while the node of a process that has died. */
  noteGone(report: string | undefined): void {
    const node = report === undefined ? null : nodeIn(report);
    if (node) this.#gone.set(node.nodeId, { node, until: this.#parts.clock.now() + NODE_GONE_MS });
  }

  #attach(nodeId: string, listener: NodeListener): () => void {
    const close = this.#own.open(nodeId, (row) => listener.deliver(row));
    this.#listener = listener;
    return () => {
      close();
      this.#listener = null;
      this.#report = null;
    };
  }

  #beat(nodeId: string, report: NodeReport): void {
    if (!this.#own.has(nodeId)) return;
    this.#report = { ...report, nodeId, updatedAt: this.#parts.clock.now() };
    this.#parts.report(encode(this.#report), report.draining);
  }

  #post(nodeId: string, row: MailboxRow): boolean {
    if (row.kind !== 'pulse') return this.#postRow(nodeId, row, 'all');
    // Through Redis, so that its arrival proves that mail is read.
    this.#parts.send(this.#parts.process, encode(row), null);
    return true;
  }

  #postRow(nodeId: string, row: MailboxRow, after: Dependency): boolean {
    if (nodeId === this.#parts.nodeId) return this.#own.post(nodeId, row);
    const process = this.#parts.processes().get(nodeId);
    if (process === undefined) return false;
    this.#parts.send(process, encode(row), after);
    return true;
  }

  #all(): readonly DispatcherNode[] {
    const { alive, processes, process, clock } = this.#parts;
    const now = clock.now();
    for (const [id, { until }] of this.#gone) if (until <= now || processes().has(id)) this.#gone.delete(id);
    const others = [...alive()].filter(([id]) => id !== process).flatMap(([, report]) => nodeIn(report) ?? []);
    const own = this.#report === null ? [] : [this.#report];
    const gone = [...this.#gone.values()].map(({ node }) => node);
    return [...own, ...others, ...gone].sort((a, b) => (a.nodeId < b.nodeId ? -1 : 1));
  }

  #silent(): readonly string[] {
    const since = this.#parts.clock.now() - NODE_SILENT_MS;
    return this.#all().flatMap(({ nodeId, updatedAt }) => (updatedAt <= since ? [nodeId] : []));
  }
}

/** Mailboxes whose rows are sent by a function. */
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

/** Reads the report of a process; null: its node has not reported yet. */
function nodeIn(report: string): DispatcherNode | null {
  // Only `encode` writes reports.
  return report === '' ? null : (decode(report) as DispatcherNode);
}
