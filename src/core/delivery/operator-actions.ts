/** Carries out what an operator can request: to disconnect a client, and to drain a node. */
import { requireAdmin } from '../auth/principal.ts';
import { isLive, type Connection } from '../connections/connection.ts';
import type { Deps } from '../deps.ts';
import { fail, invalid } from '../errors.ts';
import { canonicalUser, hasAtMost, id, type ClientKey } from '../ids.ts';
import { OPERATOR_POLL_MS, OPERATOR_CONFIRM_MS, DRAIN_WITHIN_MS, MAX_REASON } from '../limits.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import { within } from '../range.ts';
import { nodeView } from './inspection.ts';
import type { OperatorActions } from './observation.ts';

/** Creates the actions by which an operator disconnects a client and drains a node. */
export function createOperatorActions(deps: Deps): OperatorActions {
  const { backend, clock, audit } = deps;
  const { connections, nodes } = backend;
  const find = async (client: ClientKey): Promise<Connection | null> => (await connections.get([client]))[0] ?? null;
  return {
    async disconnectClient(requester, key, reason, requestId) {
      const admin = requireAdmin(requester);
      const client = { userId: canonicalUser(key.userId), clientId: id('client_id', key.clientId) };
      if (reason !== null && !hasAtMost(reason, MAX_REASON))
        invalid('reason', `expected at most ${MAX_REASON} characters`);
      const before = await find(client);
      if (!before) return null;
      if (!isLive(before, clock.now())) notConnected();
      const { nodeId, instanceId, epoch } = before;
      const subject = { ...client, instanceId, nodeId };
      const act = await audit.record(admin, { action: 'disconnect', subject, reason, requestId });
      const kick = { kind: 'kick', client, epoch, cause: 'operator', instanceId: null } as const;
      if (!(await nodes.post(nodeId, kick))) {
        await act.end('not_connected');
        notConnected();
      }
      const isGone = (now: Connection | null): boolean => now?.epoch !== epoch || now.disconnectedAt !== null;
      const after = await pollUntil(deps, () => find(client), isGone);
      const state = isGone(after) ? 'closed' : 'requested';
      await act.end(state);
      return { state, connection: after ?? before };
    },
    async drainNode(requester, nodeIdText, withinMs, requestId) {
      const admin = requireAdmin(requester);
      const nodeId = id('node_id', nodeIdText);
      const ms = within('within_ms', withinMs, DRAIN_WITHIN_MS);
      if (!(await nodes.get(nodeId))) return null;
      const act = await audit.record(admin, { action: 'drain', subject: { nodeId }, requestId });
      const isPosted = await nodes.post(nodeId, { kind: 'drain', withinMs: ms });
      await act.end(isPosted ? 'requested' : 'not_found');
      if (!isPosted) return null;
      const after = await pollUntil(
        deps,
        () => nodes.get(nodeId),
        (node) => node === null || node.draining,
      );
      return after && nodeView(after, clock.now());
    },
  };
}

function notConnected(): never {
  fail('not_connected', 'The client is not connected.');
}

/** Reads until `done` holds, for at most OPERATOR_CONFIRM_MS, because nodes process their mailboxes asynchronously. */
async function pollUntil<T>({ clock }: Deps, read: () => MaybePromise<T>, done: (seen: T) => boolean): Promise<T> {
  const end = clock.monotonic() + OPERATOR_CONFIRM_MS;
  for (;;) {
    const seen = await read();
    if (done(seen) || clock.monotonic() >= end) return seen;
    await new Promise<void>((resolve) => void clock.after(OPERATOR_POLL_MS, resolve));
  }
}
