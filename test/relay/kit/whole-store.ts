/** Reads everything that the ports of a backend show, so that a test can compare it before and after an act. */
import type { Backend } from '../../../src/core/backend.ts';
import { ANY_COMMAND } from '../../../src/core/commands/stores.ts';
import type { Scan } from '../../../src/core/page.ts';
import type { MaybePromise } from '../../../src/core/maybe-promise.ts';
import { SHARE_NAMES, type Shares } from '../../../src/core/shares/shares.ts';
const ALL = { first: 1000, after: null };

/** Returns everything that can be read, and how much of each limited resource these users hold. */
export async function wholeStore(backend: Backend, shares: Shares, users: readonly string[]): Promise<unknown> {
  const { commands, connections, dedup, history, inspector, nodes, sites, waiters } = backend;
  const rows = async <T>(scan: MaybePromise<Scan<T>>): Promise<readonly T[]> => (await scan).rows.map(({ row }) => row);
  const noFilter = { userId: null, clientId: null, nodeId: null };
  const records = await rows(inspector.list(ANY_COMMAND, ALL));
  const streams = (await Promise.all(users.map((userId) => rows(history.streams(userId, null, ALL))))).flat();
  const filter = { afterTime: null, beforeTime: null, kinds: null };
  const messages = streams.map(({ userId, suffix }) => history.messages(userId, suffix, filter, ALL));
  return {
    records,
    results: await Promise.all(records.map((record) => commands.result(record))),
    summary: await inspector.summary(),
    scopes: await rows(inspector.scopes(ALL)),
    connections: await rows(
      connections.list(
        { userId: null, nodeId: null, status: null, clientType: null, action: null, text: null, labels: [] },
        ALL,
      ),
    ),
    waits: await rows(waiters.list({ ...noFilter, callerNodeId: null, minAgeMs: null }, ALL)),
    streams,
    messages: (await Promise.all(messages)).map((scan) => scan?.rows),
    dedup: await dedup.stats(3600),
    nodes: await rows(nodes.list(ALL)).then((found) => found.map(({ nodeId }) => nodeId)),
    sites: await rows(sites.list(null, ALL)),
    shares: SHARE_NAMES.map((share) => [share, shares.used(share), users.map((user) => shares.of(user).held(share))]),
  };
}
