/** Moves a client's waiting commands when its link comes up or goes down. */
import type { Binding, LinkMove, RebindResult } from '../../core/commands/stores.ts';
import type { Command } from '../../core/commands/command.ts';
import type { ClientKey } from '../../core/ids.ts';
import { move, type Acts } from './commands-acts.ts';
import { end } from './commands-settle.ts';
import { keyOf, type ClientQueue, type Entry } from './ledger.ts';

type Move = { readonly binding: Binding; readonly link: LinkMove };

/**
 * Moves a client's waiting commands: they are queued when its link comes up, and parked when it goes down. Divides its
 * running commands into those of the connected instance and those of an earlier one.
 */
export function rebind(acts: Acts, key: ClientKey, { binding: reported, link }: Move): RebindResult {
  const client = acts.ledger.client(key);
  const bound = client.binding?.epoch ?? -Infinity;
  if (link === 'up' ? reported.epoch < bound : reported.epoch !== bound) return noneMoved(acts, client);
  const binding = link === 'down' ? null : reported;
  client.binding = binding;
  if (client.idle) return noneMoved(acts, client);
  let requeued = 0;
  for (const entry of [...client.waiting]) {
    const queuedBefore = entry.command.queuedAt !== null;
    if (!binding) park(entry);
    else if (queue(acts, entry, binding) && queuedBefore) requeued++;
  }
  const unfinished: Command[] = [];
  const orphaned: Command[] = [];
  for (const entry of binding ? client.running : []) {
    const mine = entry.command.boundInstanceId === binding?.instanceId;
    if (mine && binding) unfinished.push(reattach(entry, binding));
    else orphaned.push(entry.command);
  }
  if (!binding) acts.ledger.dropIdle(key);
  return { requeued, unfinished, orphaned };
}

/** Returns the result of a move that changed no command. Drops the client's queue if it is no longer needed. */
function noneMoved(acts: Acts, client: ClientQueue): RebindResult {
  acts.ledger.dropIdle(client.head);
  return { requeued: 0, unfinished: [], orphaned: [] };
}

/**
 * Queues a command on the client's link. Returns false if the command names another instance. Such a command ends if it
 * was queued before. Otherwise it keeps waiting for that instance.
 */
function queue(acts: Acts, entry: Entry, binding: Binding): boolean {
  const { namedInstanceId, queuedAt } = entry.command;
  if (namedInstanceId !== null && namedInstanceId !== binding.instanceId) {
    if (queuedAt !== null) end(acts, entry, 'instance_replaced');
    return false;
  }
  const { instanceId, nodeId } = binding;
  const now = acts.clock.now();
  const recovered = recoveredFrom(entry.command, entry.queuedOn, nodeId);
  entry.queuedOn = nodeId;
  move(entry, {
    stage: 'queued',
    lastProvenStage: 'queued',
    expectedInstanceId: instanceId,
    nodeId,
    recoveredFromNodeId: recovered,
    queuedAt: queuedAt ?? now,
  });
  acts.ledger.setDue(entry, entry.command.deadline);
  acts.mailboxes.post(nodeId, { kind: 'command', key: keyOf(entry.command) });
  return true;
}

function reattach(entry: Entry, { nodeId }: Binding): Command {
  const { command } = entry;
  return move(entry, { nodeId, recoveredFromNodeId: recoveredFrom(command, command.nodeId, nodeId) });
}

/**
 * Returns the node that held the command before, if that is another node than `nodeId`. Otherwise returns what the
 * record has already, which may be null.
 */
function recoveredFrom(command: Command, before: string | null, nodeId: string): string | null {
  return before !== null && before !== nodeId ? before : command.recoveredFromNodeId;
}

/**
 * Parks a queued command. The time that its caller allows for connecting no longer counts, because the command was
 * queued in that time. From then on only the deadline counts.
 */
function park(entry: Entry): void {
  if (entry.command.stage === 'queued') move(entry, { stage: 'admitted', nodeId: null });
}
