/** Builds the operator API of delivery: inspection, actions on links and nodes, and live updates of one command. */
import { readUser } from '../auth/principal.ts';
import type { CommandUpdate, Deliveries, Requester } from '../core.ts';
import type { Deps } from '../deps.ts';
import { commandKeyText, id, type CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import { createFeed, type Subscription } from '../live.ts';
import { CallboardError, isStoreUnavailable } from '../errors.ts';
import { isTerminal, type Command } from './command.ts';
import { commandEvents } from './command-events-listen.ts';
import { createOperatorActions } from './operator-actions.ts';
import type { Dispatcher } from './dispatcher.ts';
import { createInspection } from './inspection.ts';

/** The interval at which a watched command is read again, in milliseconds, because hints may be lost in shared mode. */
const REREAD_MS = 1_000;

/** Creates the operator API of delivery: inspection, actions on links and nodes, and live updates of one command. */
export function createDeliveries(deps: Deps, dispatcher: Dispatcher): Deliveries {
  const { commands } = deps.backend;
  const command = async (requester: Requester, key: CommandKey): Promise<Command | null> => {
    const own = ownKey(requester, key);
    return own ? ((await commands.get([own]))[0] ?? null) : null;
  };
  return {
    ...createInspection(deps),
    ...createOperatorActions(deps),
    command,
    many: (keys) => commands.get(keys),
    result: (key) => commands.result(key),
    async updates(requester, key) {
      const present = await command(requester, key);
      return present ? watch(deps, present) : null;
    },
    events: (requester, query) => commandEvents(deps, requester, query),
    loads: (keys) => commands.loads(keys),
    nodeLoad: () => dispatcher.load,
  };
}

/** Returns the key with its user in canonical form; null if the requester may not know of the command. */
export function ownKey(requester: Requester, key: CommandKey): CommandKey | null {
  try {
    const userId = readUser(requester, key.userId);
    return { userId, clientId: id('client_id', key.clientId), commandId: id('command_id', key.commandId) };
  } catch (error) {
    if (error instanceof CallboardError && error.code === 'not_found') return null;
    throw error;
  }
}

/**
 * Watches a command. Subscribes before it reads, so that no change is missed. Emits each version once, and progress as
 * it arrives. An update that says that the command ended has no progress: if the command has ended when its progress is
 * read, the progress comes with the state that was emitted last, and the hint of the end follows.
 */
function watch(deps: Deps, present: Command): Subscription<CommandUpdate> {
  const { backend, clock } = deps;
  let latest: Command | null = null;
  let lost = 0;
  let last: Promise<void> = Promise.resolve();
  const push = (command: Command, progress: JsonText | null): void => {
    feed.push({ command, progress, at: clock.now() }, lost);
    lost = 0;
  };
  const say = (command: Command, progress: JsonText | null): void => {
    if (progress !== null && isTerminal(command)) {
      if (latest) push(latest, progress);
      return;
    }
    if (latest && command.version <= latest.version && progress === null) return;
    latest = command;
    push(command, progress);
    if (isTerminal(command)) feed.end();
  };
  const reread = (progress: JsonText | null): void => {
    const turn = last.then(async () => {
      const [command] = await backend.commands.get([present]);
      if (command) say(command, progress);
      else feed.end();
    });
    // While a shared store is unavailable there is nothing to emit. The next read catches up.
    last = turn.catch((error: unknown) => {
      if (!backend.capabilities.shared || !isStoreUnavailable(error)) feed.fail(error);
    });
  };
  const cancels = [
    backend.bus.subscribe(
      `command:${commandKeyText(present)}`,
      ({ progress }) => reread(progress),
      () => (lost = 1),
    ),
    ...(backend.capabilities.shared ? [clock.every(REREAD_MS, () => reread(null))] : []),
  ];
  const feed = createFeed<CommandUpdate>(() => cancels.forEach((cancel) => cancel()));
  reread(null);
  return feed.subscription;
}
