/** Shares one source and one encoding of events among all event streams that want the same events. */
import { SSE_MERGE_CHARS, SUBSCRIPTION_QUEUE } from '../core/limits.ts';
import type { Lifetime, LiveEvent, SharedSubscription } from '../core/live.ts';
import type { Cancel, EventLoop } from '../core/ports.ts';
import { Chunk, type Envelope, type SseStream, type StreamMember } from './sse.ts';

/** How the events of a group are encoded. */
export type EventEncoder<T> = {
  /** Encodes one event as text. All members receive the same text; each member's own envelope surrounds it. */
  readonly encode: (live: LiveEvent<T>) => string;
  /** Returns the envelope of a member. `id`: the member's operation id; null if the stream carries only this member. */
  readonly envelope: (id: string | null) => Envelope;
  /**
   * Returns the last frames of a member. `error`: the reason for its end, of any type; null if it ended as complete.
   */
  readonly last: (id: string | null, error: unknown) => string;
};

/**
 * An encoded event. The text states only the events that were lost before they reached the group (`missed`). The event
 * itself is kept for members that have missed more: their next frame is encoded again with their own number.
 */
type Frame<T> = { readonly event: T; readonly missed: number; readonly text: string };

type GroupMemberOptions = {
  readonly stream: SseStream;
  /**
   * The member's operation id on a stream that carries several operations; null if the stream carries only this one.
   */
  readonly id: string | null;
  readonly lifetime: Lifetime;
  /** Called once when the member has ended for any reason. A stream that carries only this member then ends too. */
  readonly onEnd: () => void;
};

type GroupOptions = { readonly loop: EventLoop; readonly onEmpty: () => void };

/**
 * Members that receive the same events. They share one source and one encoding of each event. Members that have a
 * stream to themselves also share one buffer. Events that arrive within one turn of the event loop are sent in one
 * write, or earlier if they exceed SSE_MERGE_CHARS characters. The first member opens the group, and the group closes
 * when the last member leaves.
 */
class Group<T> {
  readonly encoder: EventEncoder<T>;
  readonly #members = new Set<GroupMember<T>>();
  readonly #onEmpty: () => void;
  readonly #stop: Cancel;
  readonly #loop: EventLoop;
  #pending: Frame<T>[] = [];
  #pendingChars = 0;
  #scheduled = false;

  constructor(
    encoder: EventEncoder<T>,
    { listen, loop, onEmpty }: Pick<SharedSubscription<T>, 'listen'> & GroupOptions,
  ) {
    this.encoder = encoder;
    this.#onEmpty = onEmpty;
    this.#loop = loop;
    this.#stop = listen((event, missed = 0) => this.#push({ event, missed }));
  }

  /** Adds a member. It receives the events published from now on. */
  add(options: GroupMemberOptions): GroupMember<T> {
    this.#flush();
    const member = new GroupMember(this, options);
    this.#members.add(member);
    member.start();
    return member;
  }

  remove(member: GroupMember<T>): void {
    if (!this.#members.delete(member) || this.#members.size > 0) return;
    this.#stop();
    this.#onEmpty();
  }

  #push(live: LiveEvent<T>): void {
    const text = this.#encode(live);
    if (text === null) return;
    this.#pending.push({ ...live, text });
    this.#pendingChars += text.length;
    if (this.#pendingChars >= SSE_MERGE_CHARS) this.#flush();
    else if (!this.#scheduled) {
      this.#scheduled = true;
      this.#loop.atTurnEnd(() => {
        this.#scheduled = false;
        this.#flush();
      });
    }
  }

  /**
   * Encodes an event; null if that fails. A failure ends all members with the error, as it would end a subscriber
   * outside a group.
   */
  #encode(live: LiveEvent<T>): string | null {
    try {
      return this.encoder.encode(live);
    } catch (error) {
      this.#flush();
      for (const member of [...this.#members]) member.fail(error);
      return null;
    }
  }

  #flush(): void {
    const frames = this.#pending;
    if (frames.length === 0) return;
    this.#pending = [];
    this.#pendingChars = 0;
    const merged = new Chunk(inEnvelope(frames, this.encoder.envelope(null)));
    for (const member of this.#members) member.take(frames, merged);
  }
}

/** One member of a group, with a bounded queue of its own. A slow reader therefore does not delay the others. */
export class GroupMember<T> implements StreamMember {
  readonly #group: Group<T>;
  readonly #stream: SseStream;
  readonly #id: string | null;
  readonly #lifetime: Lifetime;
  readonly #onEnd: () => void;
  /** The frames that the stream could not accept yet, at most SUBSCRIPTION_QUEUE; null if there are none. */
  #queue: Frame<T>[] | null = null;
  /** The number of events that were dropped before the first one in the queue. */
  #missed = 0;
  #over = false;

  constructor(group: Group<T>, { stream, id, lifetime, onEnd }: GroupMemberOptions) {
    this.#group = group;
    this.#stream = stream;
    this.#id = id;
    this.#lifetime = lifetime;
    this.#onEnd = onEnd;
  }

  /** Starts the member. The member ends at once if its lifetime is already over. */
  start(): void {
    this.#stream.addMember(this);
    this.#lifetime.endWith(this);
  }

  /** Sends or queues frames. `merged`: the same frames as one chunk, for members that have a stream to themselves. */
  take(frames: readonly Frame<T>[], merged: Chunk): void {
    if (this.#queue !== null || this.#stream.blocked) this.#keep(frames);
    else if (this.#id === null) this.#stream.write(merged);
    else this.#stream.send(inEnvelope(frames, this.#group.encoder.envelope(this.#id)));
  }

  drained(): void {
    while (this.#queue !== null && !this.#stream.blocked) {
      const first = this.#queue.shift();
      if (this.#queue.length === 0) this.#queue = null;
      if (first) this.#stream.send(inEnvelope([this.#withMissed(first)], this.#group.encoder.envelope(this.#id)));
    }
  }

  gone(): void {
    this.#leave();
  }

  /** Ends the member as complete, after its last frames. */
  complete(): void {
    this.fail(null);
  }

  /** Ends the member at once with the error; its queued frames are dropped. */
  fail(error: unknown): void {
    if (this.#over) return;
    this.#stream.send(this.#group.encoder.last(this.#id, error));
    this.#leave();
  }

  #leave(): void {
    if (this.#over) return;
    this.#over = true;
    this.#queue = null;
    this.#lifetime.close();
    this.#stream.removeMember(this);
    this.#group.remove(this);
    if (this.#id === null) this.#stream.end();
    this.#onEnd();
  }

  #keep(frames: readonly Frame<T>[]): void {
    const queue = (this.#queue ??= []);
    queue.push(...frames);
    const dropped = queue.length - SUBSCRIPTION_QUEUE;
    if (dropped <= 0) return;
    for (const { missed } of queue.splice(0, dropped)) this.#missed += 1 + missed;
  }

  /**
   * Encodes a frame again with the number of events that this member missed. Needed only by members that missed events.
   */
  #withMissed(frame: Frame<T>): Frame<T> {
    if (this.#missed === 0) return frame;
    const missed = this.#missed + frame.missed;
    this.#missed = 0;
    return { ...frame, text: this.#group.encoder.encode({ event: frame.event, missed }) };
  }
}

function inEnvelope(frames: readonly { readonly text: string }[], { head, tail }: Envelope): string {
  let text = '';
  for (const frame of frames) text += head + frame.text + tail;
  return text;
}

/** The open groups of one encoding. Each has a key that its members share. */
export type Groups<T> = {
  /**
   * Adds a member to the group with the key of `of`, or opens that group. Subscriptions with equal keys must have equal
   * events and equal encodings.
   */
  join(of: Joining<T>, member: Omit<GroupMemberOptions, 'lifetime'>): GroupMember<T>;
  /** The number of open groups. */
  readonly size: number;
};

export type Joining<T> = { readonly shared: SharedSubscription<T>; readonly encoder: () => EventEncoder<T> };

/** Creates the groups of one encoding. `sharing` false: each member gets a group of its own. */
export function createGroups<T>({ sharing, loop }: { readonly sharing: boolean; readonly loop: EventLoop }): Groups<T> {
  const groups = new Map<string, Group<T>>();
  const opened = ({ shared: { key, listen }, encoder }: Joining<T>): Group<T> => {
    const known = sharing ? groups.get(key) : undefined;
    if (known) return known;
    const name = sharing ? key : `${++alone}`;
    const group = new Group(encoder(), { listen, loop, onEmpty: () => groups.delete(name) });
    groups.set(name, group);
    return group;
  };
  let alone = 0;
  return {
    join: (of, member) => opened(of).add({ ...member, lifetime: of.shared.lifetime }),
    get size() {
      return groups.size;
    },
  };
}
