/** Core's NodeStore in memory: the nodes' mailboxes and their last reports. */
import type { DispatcherNode, NodeReport, NodeStore } from '../../core/commands/node-store.ts';
import { NODE_SILENT_MS } from '../../core/limits.ts';
import { scanSorted } from '../../core/page.ts';
import type { Clock } from '../../core/ports.ts';
import type { Mailboxes } from './commands.ts';
import type { Ledger } from './ledger.ts';

const NO_NODES: readonly string[] = [];

/** Creates core's NodeStore in memory. */
export function createMemoryNodes(clock: Clock, mailboxes: Mailboxes, ledger: Ledger): NodeStore {
  const reports = new Map<string, DispatcherNode>();
  const store = (nodeId: string, report: NodeReport): void => {
    reports.set(nodeId, { ...report, nodeId, updatedAt: clock.now() });
  };
  return {
    attach(nodeId, listener) {
      const close = mailboxes.open(nodeId, listener);
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
    // Called for many answers, so it creates no array unless a node is silent.
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
