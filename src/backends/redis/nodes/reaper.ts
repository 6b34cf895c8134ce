/** Runs the cleanup after nodes that are gone, part by part. The rules are in nodes/reap.lua. */
import type { Connection } from '../../../core/connections/connection.ts';
import { decodeConnection } from '../connections/rows.ts';
import type { RedisParts } from '../parts.ts';
import { listOf } from '../replies.ts';

export type ReaperOptions = {
  readonly parts: Pick<RedisParts, 'store' | 'log'>;
  /** Called with the links that were found lost, each once in the whole deployment. */
  readonly linksLost: (connections: readonly Connection[]) => void;
};

/** Runs the cleanup after nodes that are gone. */
export interface Reaper {
  /**
   * Removes all that a node held in a partition. `boot`: the boot id of this process if the node is its own, or null
   * for another node. Another node is cleaned up only if its lease is over. Throws the same errors as acts.
   */
  clear(partition: number, node: string, boot: string | null): Promise<void>;
  /** Starts the cleanup after these nodes, unless it is running. If it fails, the next call starts it again. */
  begin(partition: number, nodes: readonly string[]): void;
}

export function createReaper({ parts, linksLost }: ReaperOptions): Reaper {
  const underWay = new Set<string>();
  const clear = async (partition: number, node: string, boot: string | null): Promise<void> => {
    for (;;) {
      const [more, rows] = listOf(await parts.store.act(partition, 'nodes-reap', [node, boot]));
      const lost = listOf(rows).flatMap((row) => decodeConnection(row) ?? []);
      if (lost.length > 0) linksLost(lost);
      if (more !== 1) return;
    }
  };
  return {
    clear,
    begin(partition, nodes) {
      for (const node of nodes) {
        const place = `${partition} ${node}`;
        if (underWay.has(place)) continue;
        underWay.add(place);
        parts.log.warn({ node, partition }, 'a node is gone: the cleanup after it begins');
        clear(partition, node, null)
          .catch((error: unknown) =>
            parts.log.warn({ err: error, node, partition }, 'the cleanup after a node failed: it begins again later'),
          )
          .finally(() => underWay.delete(place));
      }
    },
  };
}
