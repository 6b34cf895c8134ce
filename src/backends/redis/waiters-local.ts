/** Keeps the waits of this process's callers. Redis only stores which nodes wait for a command (see `parseWaits`). */
import { ChurnMap } from '../../core/collections.ts';
import { satisfied, waiterOf, type NewWaiter, type Waiter } from '../../core/commands/waiter.ts';
import type { Command } from '../../core/commands/command.ts';
import { commandKeyText, type CommandKey } from '../../core/ids.ts';
import type { JsonText } from '../../core/json.ts';
import { sortable, type Position } from '../../core/page.ts';

/** A wait of a caller of this process. */
export type LocalWait = {
  readonly key: CommandKey;
  readonly request: NewWaiter;
  /** The number that identifies the wait in Redis, unique within this process. */
  readonly number: string;
  /** How listings show the wait; null until Redis has registered it. Only registered waits are listed. */
  listed: { readonly waiter: Waiter; readonly position: Position } | null;
};

/** The answer of Redis when it registered a wait: the command, and the time in epoch milliseconds. */
type Registered = { readonly command: Command; readonly at: number };

/** A recorded end, with the values that resolve the waiters of the command. */
export type RecordedEnd = { readonly command: Command; readonly result: JsonText | null };

/** The waits of this process, by rpc id and by command. */
export interface LocalWaits {
  /**
   * Adds a wait. Call it before Redis registers the wait, because the reply may arrive first. If a wait with this rpc
   * id exists, returns that wait.
   */
  begin(key: CommandKey, request: NewWaiter): LocalWait;
  /**
   * Includes a wait in listings, and returns its row. A wait that was dropped or taken in the meantime stays unlisted.
   */
  register(wait: LocalWait, registered: Registered): Waiter;
  /** Removes a wait and returns it; null if there is none. */
  drop(rpcId: string): LocalWait | null;
  /** Removes and returns the waits of a node that the record satisfies, oldest first. */
  take(nodeId: string, command: Command): readonly LocalWait[];
  /** Sets the function that replies to the waits of the node that this process acts for. */
  onEnd(reply: (end: RecordedEnd) => void): void;
  /**
   * Replies to the waits of the node that this process acts for, from an answer of Redis: the mailbox of that node gets
   * no row. May be repeated.
   */
  end(end: RecordedEnd): void;
  /** Whether a caller of this process waits for the command. Includes waits that Redis has not registered yet. */
  awaits(key: CommandKey): boolean;
  /** Returns the registered waits for a command, oldest first. */
  ofCommand(key: CommandKey): readonly LocalWait[];
  /** Iterates over all registered waits, in the order of their positions. */
  listed(): Iterable<LocalWait>;
}

export function createLocalWaits(): LocalWaits {
  const byRpc = new ChurnMap<string, LocalWait>();
  const byCommand = new ChurnMap<string, readonly LocalWait[]>();
  const inOrder = new ChurnMap<string, LocalWait>();
  let begun = 0;
  let reply: (end: RecordedEnd) => void = () => {};
  const last = { at: 0, place: 0 };
  const remove = (wait: LocalWait): void => {
    const { rpcId } = wait.request;
    byRpc.delete(rpcId);
    inOrder.delete(rpcId);
    const name = commandKeyText(wait.key);
    const left = byCommand.get(name)?.filter((other) => other !== wait) ?? [];
    if (left.length > 0) byCommand.set(name, left);
    else byCommand.delete(name);
  };
  return {
    begin(key, request) {
      const known = byRpc.get(request.rpcId);
      if (known) return known;
      const { userId, clientId, commandId } = key;
      const named = { userId, clientId, commandId };
      const wait: LocalWait = { key: named, request, number: (++begun).toString(36), listed: null };
      byRpc.set(request.rpcId, wait);
      byCommand.set(commandKeyText(key), [...(byCommand.get(commandKeyText(key)) ?? []), wait]);
      return wait;
    },
    register(wait, registered) {
      if (wait.listed) return wait.listed.waiter;
      const { rpcId } = wait.request;
      const waiter = waiterOf(registered.command, wait.request, registered.at);
      // A page continues after a position, so a new wait must never get a position before an existing one.
      last.at = Math.max(last.at, registered.at);
      wait.listed = { waiter, position: [sortable(last.at), sortable(++last.place), rpcId] };
      if (byRpc.get(rpcId) === wait) inOrder.set(rpcId, wait);
      return waiter;
    },
    drop(rpcId) {
      const wait = byRpc.get(rpcId) ?? null;
      if (wait) remove(wait);
      return wait;
    },
    take(nodeId, command) {
      const taken = (byCommand.get(commandKeyText(command)) ?? []).filter(
        ({ request }) => request.callerNodeId === nodeId && satisfied(request.waitFor, command),
      );
      for (const wait of taken) remove(wait);
      return taken;
    },
    onEnd(given) {
      reply = given;
    },
    end: (end) => reply(end),
    awaits: (key) => byCommand.get(commandKeyText(key)) !== undefined,
    ofCommand: (key) => (byCommand.get(commandKeyText(key)) ?? []).filter(({ listed }) => listed !== null),
    listed: () => inOrder.values(),
  };
}

// The waits for a command as Redis stores them: one text that says which nodes wait, and for what.

/** The waits of one node's callers. `list`: one text for each wait, in the form of `waitText`. */
export type NodeWaits = { readonly node: string; readonly epoch: string; readonly list: readonly string[] };

/**
 * Encodes a wait: a letter (`a`: until the command is acknowledged, `c`: until it ends), and the number of the wait.
 */
export function waitText(waitFor: NewWaiter['waitFor'], number: string): string {
  return (waitFor === 'acknowledged' ? 'a' : 'c') + number;
}

/** Decodes the waits for a command. For each node the text has three fields, each followed by a NUL. */
export function parseWaits(text: string): readonly NodeWaits[] {
  const fields = text.split('\0');
  const found: NodeWaits[] = [];
  for (let i = 0; i + 2 < fields.length; i += 3) {
    const [node = '', epoch = '', list = ''] = fields.slice(i, i + 3);
    found.push({ node, epoch, list: list.split(',').filter((wait) => wait !== '') });
  }
  return found;
}

/** Encodes the waits for a command; '' if there are none. */
export function waitsText(waits: readonly NodeWaits[]): string {
  return waits
    .filter(({ list }) => list.length > 0)
    .map(({ node, epoch, list }) => `${node}\0${epoch}\0${list.join(',')},\0`)
    .join('');
}
