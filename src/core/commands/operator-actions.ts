/** Carries out the actions that an operator can request: disconnecting a client, and draining a node. */
import { requireAdmin, type Requester } from '../auth/principal.ts';
import { isLive, type Connection } from '../connections/connection.ts';
import type { Deps } from '../deps.ts';
import { fail, invalid } from '../errors.ts';
import { canonicalUser, hasAtMost, id, within, type ClientKey } from '../ids.ts';
import { DRAIN_WITHIN_MS, MAX_REASON, OPERATOR_CONFIRM_MS, OPERATOR_POLL_MS } from '../limits.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import { nodeView, type NodeView } from './inspection.ts';

/** Checks the reason of a cancel or a disconnect; null if the operator gave none. Throws `invalid_argument`. */
export function checkReason(reason: string | null): void {
  if (reason !== null && !hasAtMost(reason, MAX_REASON)) invalid('reason', `expected at most ${MAX_REASON} characters`);
}

/**
 * The result of closing a link as an operator. `closed`: the link is gone. `requested`: the link's node was asked to
 * close it and has not confirmed yet. `connection`: the client's connection afterwards, which may already be another
 * link.
 */
export type Disconnection = { readonly state: 'closed' | 'requested'; readonly connection: Connection };

/**
 * Creates the operator's actions, for administrators only. Each action is written to the audit first. If that fails,
 * the action throws `audit_unavailable` and does nothing. `requestId`: the id of the request, for the audit row.
 */
export function createOperatorActions(deps: Deps) {
  const { backend, clock, audit } = deps;
  const { connections, nodes } = backend;
  const find = async (client: ClientKey): Promise<Connection | null> => (await connections.get([client]))[0] ?? null;
  return {
    /**
     * Closes a client's link with the cause `operator`. Null if there is no such connection. Throws `not_connected` if
     * the client is not connected.
     */
    async disconnectClient(
      requester: Requester,
      key: ClientKey,
      reason: string | null,
      requestId?: string | null,
    ): Promise<Disconnection | null> {
      const admin = requireAdmin(requester);
      const client = { userId: canonicalUser(key.userId), clientId: id('client_id', key.clientId) };
      checkReason(reason);
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
    /**
     * Asks a node to drain for at most `withinMs` milliseconds, and returns the node as it last reported. Null if there
     * is no such live node.
     */
    async drainNode(
      requester: Requester,
      nodeIdText: string,
      withinMs: number | null,
      reason: string | null = null,
      requestId?: string | null,
    ): Promise<NodeView | null> {
      const admin = requireAdmin(requester);
      const nodeId = id('node_id', nodeIdText);
      const ms = within('within_ms', withinMs, DRAIN_WITHIN_MS);
      checkReason(reason);
      if (!(await nodes.get(nodeId))) return null;
      const act = await audit.record(admin, { action: 'drain', subject: { nodeId }, reason, requestId });
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

/**
 * Reads again until `done` returns true, for at most OPERATOR_CONFIRM_MS, because nodes process their mailboxes
 * asynchronously.
 */
async function pollUntil<T>({ clock }: Deps, read: () => MaybePromise<T>, done: (seen: T) => boolean): Promise<T> {
  const end = clock.monotonic() + OPERATOR_CONFIRM_MS;
  for (;;) {
    const seen = await read();
    if (done(seen) || clock.monotonic() >= end) return seen;
    await new Promise<void>((resolve) => void clock.after(OPERATOR_POLL_MS, resolve));
  }
}
