/** Chooses the channel for the events of a topic, and encodes and decodes the messages of the bus. */
import type { ConnectionEvent } from '../../core/backend.ts';
import type { CommandEvent } from '../../core/commands/command-event.ts';
import type { CommandKey } from '../../core/ids.ts';
import { partitionOfId } from './sites-ids.ts';
import type { Store } from './store.ts';

const COMMAND = 'command:';
const EVENTS = 'events:';
const SITE = 'site:';
const SESSION = 'session:';
const TICKET = 'ticket:';

/**
 * The channel on which the events of a topic are published: the channel of a partition (`bus`), or the channel of one
 * command (`hint`, with the hash of the command).
 */
export type Place = { readonly partition: number; readonly kind: 'bus' | 'hint'; readonly hash: string | null };

type CommandPlace = Place & { readonly hash: string };

export function placeOfCommand(store: Store, { userId, clientId, commandId }: CommandKey): CommandPlace {
  return { partition: store.partitionOfUser(userId), kind: 'hint', hash: store.hash(userId, clientId, commandId) };
}

/** Reads the command's key from a topic. Returns null if the topic is not a command's. */
export function commandOf(topic: string): CommandKey | null {
  if (!topic.startsWith(COMMAND)) return null;
  const [userId = '', clientId = '', commandId = ''] = topic.slice(COMMAND.length).split('/');
  return { userId, clientId, commandId };
}

/**
 * Returns the partition on whose channel an event is published. All events of one user use one channel, so they arrive
 * in order. For an id that names no partition, any channel will do, because every node subscribes to all of them.
 */
export function partitionOf(store: Store, topic: string, event: unknown): number {
  if (topic.startsWith(EVENTS)) return store.partitionOfUser((event as CommandEvent).command.userId);
  if (topic === 'listening') return 0;
  if (topic === 'connections') return store.partitionOfUser((event as ConnectionEvent).connection.userId);
  if (topic.startsWith(SITE)) return store.partitionOfUser(topic.slice(SITE.length).split('/')[0] ?? '');
  const id = topic.startsWith(TICKET) ? topic.slice(TICKET.length) : topic.slice(SESSION.length);
  return partitionOfId(id, store.partitions) ?? 0;
}

/**
 * A message on a channel: its sender, a space, the topic, a line break, and the event as JSON. Topics contain no line
 * break.
 */
type Message = { readonly origin: string; readonly topic: string; readonly json: string };

export function encodeMessage({ origin, topic, json }: Message): string {
  return `${origin} ${topic}\n${json}`;
}

/** Decodes a message, except for its JSON. Returns null if the text is not a message of callboard. */
export function decodeMessage(text: string): Message | null {
  const space = text.indexOf(' ');
  const line = text.indexOf('\n');
  if (space < 1 || line < space) return null;
  return { origin: text.slice(0, space), topic: text.slice(space + 1, line), json: text.slice(line + 1) };
}
