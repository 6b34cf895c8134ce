/** The mailboxes of nodes, and what nodes report. */
import type { DispatcherNode, MailboxRow, NodeReport, NodeStore } from '../../core/commands/stores.ts';
import { CallboardError } from '../../core/errors.ts';
import { NODE_SILENT_MS } from '../../core/limits.ts';
import { scanSorted } from '../../core/page.ts';
import type { Clock } from '../../core/ports.ts';
import type { Ledger } from './ledger.ts';

type Box = { readonly deliver: (row: MailboxRow) => void; rows: MailboxRow[]; scheduled: boolean };

/**
 * The mailboxes of the nodes in one process. Rows are delivered in order, in a microtask, after the act that posted
 * them is complete.
 */
export class Mailboxes {
  readonly #boxes = new Map<string, Box>();

  open(nodeId: string, deliver: (row: MailboxRow) => void): () => void {
    if (this.#boxes.has(nodeId)) throw new CallboardError('internal', `Another live node is called "${nodeId}".`);
    const box: Box = { deliver, rows: [], scheduled: false };
    this.#boxes.set(nodeId, box);
    return () => {
      if (this.#boxes.get(nodeId) === box) this.#boxes.delete(nodeId);
    };
  }

  post(nodeId: string, row: MailboxRow): boolean {
    const box = this.#boxes.get(nodeId);
    if (!box) return false;
    box.rows.push(row);
    if (!box.scheduled) {
      box.scheduled = true;
      queueMicrotask(() => this.#flush(nodeId, box));
    }
    return true;
  }

  has(nodeId: string): boolean {
    return this.#boxes.has(nodeId);
  }

  #flush(nodeId: string, box: Box): void {
    const rows = box.rows;
    box.rows = [];
    box.scheduled = false;
    for (const row of rows) if (this.#boxes.get(nodeId) === box) box.deliver(row);
  }
}

const NO_NODES: readonly string[] = [];

/** Creates core's NodeStore in memory. */
export function createMemoryNodes(clock: Clock, mailboxes: Mailboxes, ledger: Ledger): NodeStore {
  const reports = new Map<string, DispatcherNode>();
  const store = (nodeId: string, report: NodeReport): void => {
    reports.set(nodeId, { ...report, nodeId, updatedAt: clock.now() });
  };
  return {
    attach(nodeId, listener) {
      const close = mailboxes.open(nodeId, (row) => listener.deliver(row));
      return () => {
        close();
        reports.delete(nodeId);
      };
    },
    beat(nodeId, report) {
      if (mailboxes.has(nodeId)) store(nodeId, report);
    },
    post: (nodeId, row) => mailboxes.post(nodeId, row),
    due: (limit) => ledger.due(limit),
    get: (nodeId) => reports.get(nodeId) ?? null,
    silent() {
      const since = clock.now() - NODE_SILENT_MS;
      let late: string[] | null = null;
      for (const { nodeId, updatedAt } of reports.values()) if (updatedAt <= since) (late ??= []).push(nodeId);
      return late?.sort() ?? NO_NODES;
    },
    list(page) {
      const after = page.after?.[0] ?? '';
      const rows = [...reports.values()]
        .filter(({ nodeId }) => nodeId > after)
        .sort((a, b) => (a.nodeId < b.nodeId ? -1 : 1));
      return scanSorted(rows, page, ({ nodeId }) => [nodeId]);
    },
  };
}
