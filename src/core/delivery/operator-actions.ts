/** What an operator can do: disconnect a client, drain a node. */
import { audit } from '../audit.ts';
import { requireAdmin } from '../auth/principal.ts';
import { isLive, type Connection } from '../connections/connection.ts';
import type { Deps } from '../deps.ts';
import { fail, invalid } from '../errors.ts';
import { canonicalUser, id, type ClientKey } from '../ids.ts';
import { OPERATOR_POLL_MS, OPERATOR_CONFIRM_MS, DRAIN_WITHIN_MS, MAX_REASON } from '../limits.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import { within } from '../range.ts';
import { nodeView } from './inspection.ts';
import type { OperatorActions } from './observation.ts';

/**
 * Operator actions. Each posts a row to the mailbox of the node concerned and answers with the state that it then
 * reads.
 */
export function createOperatorActions(deps: Deps): OperatorActions {
  const { backend, clock, log } = deps;
  const { connections, nodes } = backend;
  const find = async (client: ClientKey): Promise<Connection | null> => (await connections.get([client]))[0] ?? null;
  return {
    async disconnectClient(requester, key, reason) {
      const admin = requireAdmin(requester);
      const client = { userId: canonicalUser(key.userId), clientId: id('client_id', key.clientId) };
      if (reason !== null && reason.length > MAX_REASON) invalid('reason', `expected at most ${MAX_REASON} characters`);
      const before = await find(client);
      if (!before) return null;
      if (!isLive(before, clock.now())) notConnected();
      const { nodeId, instanceId, epoch } = before;
      audit(log, admin, { action: 'disconnect', ...client, instanceId, nodeId, reason });
      const kick = { kind: 'kick', client, epoch, cause: 'operator', instanceId: null } as const;
      if (!(await nodes.post(nodeId, kick))) notConnected();
      const isGone = (now: Connection | null): boolean => now?.epoch !== epoch || now.disconnectedAt !== null;
      const after = await pollUntil(deps, () => find(client), isGone);
      return { state: isGone(after) ? 'closed' : 'requested', connection: after ?? before };
    },
    async drainNode(requester, nodeIdText, withinMs) {
      const admin = requireAdmin(requester);
      const nodeId = id('node_id', nodeIdText);
      const ms = within('within_ms', withinMs, DRAIN_WITHIN_MS);
      if (!(await nodes.get(nodeId))) return null;
      audit(log, admin, { action: 'drain', nodeId, withinMs: ms });
      if (!(await nodes.post(nodeId, { kind: 'drain', withinMs: ms }))) return null;
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

/** Nodes process their mailboxes asynchronously: reads until `done` holds, for at most DEED_TOLD_MS. */
async function pollUntil<T>({ clock }: Deps, read: () => MaybePromise<T>, done: (seen: T) => boolean): Promise<T> {
  const end = clock.now() + OPERATOR_CONFIRM_MS;
  for (;;) {
    const seen = await read();
    if (done(seen) || clock.now() >= end) return seen;
    await new Promise<void>((resolve) => void clock.after(OPERATOR_POLL_MS, resolve));
  }
}
