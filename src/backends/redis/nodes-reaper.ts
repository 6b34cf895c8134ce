/** Cleans up after dead nodes, in steps, with the act `nodes-reap` of nodes.lua. */
import type { Binding } from '../../core/commands/command-store.ts';
import type { Connection } from '../../core/connections/connection.ts';
import type { ClientKey } from '../../core/ids.ts';
import { requestField, textsOf } from './commands/record.ts';
import { decodeConnection } from './connections-rows.ts';
import type { RedisDeps } from './deps.ts';
import { listOf } from './replies.ts';

type ReaperOptions = {
  readonly deps: Pick<RedisDeps, 'store' | 'log'>;
  /** Called with the links that were found lost. Each link is reported once in the whole deployment. */
  readonly linksLost: (connections: readonly Connection[]) => void;
  /** Parks the commands that wait for a client, and unbinds the client, unless it has a newer link. */
  readonly park: (client: ClientKey, link: Binding) => Promise<unknown>;
};

export type Reaper = ReturnType<typeof createReaper>;

export function createReaper({ deps, linksLost, park }: ReaperOptions) {
  const underWay = new Set<string>();
  /**
   * Removes everything that a node held in a partition. `boot`: the boot id of this process, to release its own node.
   * This works even before the lease is over, unless another process has taken over the node id. Null: cleans up after
   * another node, but only once its lease is over. Throws the errors of acts.
   */
  const clear = async (partition: number, node: string, boot: string | null): Promise<void> => {
    for (;;) {
      // Each act handles a part of the node's links. `more`: 1 while links are left. `rows`: the connections that the
      // act found lost. `waiting`: the clients for which commands wait; these clients stay bound to the node until
      // their commands are parked.
      const [more, rows, waiting] = listOf(await deps.store.act(partition, 'nodes-reap', [node, boot]));
      const lost = listOf(rows).flatMap((row) => decodeConnection(row) ?? []);
      if (lost.length > 0) linksLost(lost);
      const parked = listOf(waiting).map((one) => {
        // The request of one of these commands, which names the client, and the epoch and the instance of the client's
        // link.
        const [request = '', epoch, instanceId = ''] = listOf(one).map(String);
        const texts = textsOf(request);
        const client = { userId: requestField(texts, 'userId'), clientId: requestField(texts, 'clientId') };
        return park(client, { nodeId: node, instanceId, epoch: Number(epoch) });
      });
      await Promise.all(parked);
      if (more !== 1) return;
    }
  };
  return {
    clear,
    /**
     * Starts to clean up after these nodes, unless that is in progress. After a failure, the next call starts again.
     */
    begin(partition: number, nodes: readonly string[]): void {
      for (const node of nodes) {
        const place = `${partition} ${node}`;
        if (underWay.has(place)) continue;
        underWay.add(place);
        deps.log.warn({ node, partition }, 'a node is gone: the cleanup after it begins');
        clear(partition, node, null)
          .catch((error: unknown) =>
            deps.log.warn({ err: error, node, partition }, 'the cleanup after a node failed: it begins again later'),
          )
          .finally(() => underWay.delete(place));
      }
    },
  };
}
