/**
 * The interface of one act on commands: what the rules read from a store, and the methods with which they change it.
 * Types only.
 */
import type { MessageKind, StoredPayload, TerminalError } from '../history/message.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import type { Pause, PausedCall } from '../pauses/pause.ts';
import type { CallerRate } from '../rates.ts';
import type { ShareRefusal } from '../shares/share-bounds.ts';
import type { Command, CommandMark } from './command.ts';
import type { NewWaiter } from './waiter.ts';
import type { AdmitQuestion, AdmitRequest, AdmitResult, Binding, LinkMove, Received } from './command-store.ts';
import type { MailboxRow } from './node-store.ts';

/** A mailbox row about a command, which an act on the command posts. */
export type CommandRow = Extract<MailboxRow, { readonly key: CommandKey }>;

/** The progress rows of a command: how many there are, and when the last one was written. */
export type Progress = { readonly rows: number; readonly at: number };

/**
 * A command as a store holds it: its record, and members that are not part of the record. Only a transaction changes
 * it.
 */
export interface HeldCommand {
  readonly command: Command;
  /** The node on which the command was last queued. */
  readonly queuedOn: string | null;
  /**
   * The attempt that recorded the dispatch (see `attemptOf`); null if there was none, or if the store does not store
   * attempts.
   */
  readonly markedBy: string | null;
  /** Null before the first progress row. */
  readonly progress: Progress | null;
}

/** What the rules read about a client: its link, and how many of its commands were not dispatched yet. */
export interface ClientView {
  readonly binding: Binding | null;
  readonly waiting: { readonly size: number };
}

/**
 * The opening or closing of a client's link. `begun`: whether earlier acts have already moved the first parts of the
 * queue (see `Transaction.moving`). `received`: see `CommandStore.rebind`.
 */
export type Move = {
  readonly binding: Binding;
  readonly link: LinkMove;
  readonly begun?: boolean;
  readonly received?: Received | undefined;
};

/** The commands of a client that one act moves, each list in the order of admission. */
export interface MovingQueue<E> {
  /** The link to which the client is bound, even if the lease of the link's node has run out. */
  readonly binding: Binding | null;
  /** The commands that were not dispatched. */
  readonly waiting: Iterable<E>;
  /** The commands that were admitted for the new link after it opened. They come after `waiting`. */
  readonly arrived: Iterable<E>;
  /** The commands that were dispatched. Empty except for the last part. */
  readonly running: Iterable<E>;
  /** Whether this is the last part of the queue. */
  readonly isLast: boolean;
}

/**
 * What a client reports about a context. `reported`: this instance reports the context, as not closed and in its first
 * life. `gone`: the client's instance has reported its contexts, and this one is not among them, is closed, or is in a
 * later life. `unknown`: the client's instance has not reported its contexts, or its connection was forgotten.
 */
export type ContextState =
  { readonly kind: 'reported'; readonly instanceId: string } | { readonly kind: 'gone' | 'unknown' };

export type RefusedAdmission = Extract<AdmitResult, { readonly kind: 'refused' }>;

/** The members of a history row that a rule decides. The default for `id` is `<command>:<kind>`. */
export type CommandMessage = {
  readonly kind: MessageKind;
  readonly instanceId: string | null;
  readonly id?: string;
  readonly kept?: StoredPayload;
  readonly error?: TerminalError | null;
};

/**
 * One act on commands. A rule makes all its changes with these methods, and either all of them are applied or none. A
 * store may answer reads from a cache, if it checks before it writes that the values are still valid. A guard may leave
 * its refusal to that check, and then returns null. `E` is a command and `C` a client, as the store holds them.
 */
export interface Transaction<E extends HeldCommand, C extends ClientView> {
  /** The time of the act, in epoch milliseconds. */
  readonly now: number;

  // Reads.
  /** Returns a live or ended command whose record is retained. */
  find(key: CommandKey): E | null;
  /**
   * Returns the mark of an ended command whose record was removed; `conflict` if its digest differs from the given one.
   */
  markOf(key: CommandKey, digest: string | null): CommandMark | 'conflict' | null;
  client(key: ClientKey): C;
  /**
   * Returns the commands of a client that move because of its link. A store may move a long queue in parts. Each part
   * is an act of its own, and gets the next commands in the order of admission.
   */
  moving(key: ClientKey, move: Move): MovingQueue<E>;
  /** Whether the client's connection is no longer the one in `seen`, or its actions have changed. */
  isOutdated(request: AdmitRequest): boolean;
  /** Whether the time has passed, by the clock that decides deadlines. */
  isOver(deadline: number): boolean;
  /** Returns the params of a live command; null if the store no longer has them. */
  params(entry: E): JsonText | null;
  /**
   * Returns the params of a dispatched command, for writing the command again. If the call had no params, returns `{}`.
   * Null if the params are no longer stored.
   */
  keptParams(entry: E): JsonText | null;
  /** Returns the recorded result; null if there is none, or if it is no longer retained. */
  result(entry: E): JsonText | null;
  /** Returns what a client reports about a context. */
  context(key: ClientKey, contextId: string): ContextState;
  /** Returns a pause that covers the call now; null if none does. */
  pauseOf(call: PausedCall): Pause | null;
  /** Returns how many reservations a scope holds. For answers only: the guards do their own comparisons. */
  reserved(scopeId: string): number;

  // Guards: each returns a refusal, or null if there is nothing to refuse.
  /** Refuses if the scope holds `most` or more reservations. */
  scopeFull(scopeId: string, most: number, refusal: RefusedAdmission): RefusedAdmission | null;
  /** Refuses if the scope holds more than `above` reservations and the user holds `most` or more of them. */
  memberFull(question: AdmitQuestion, limits: MemberLimits, refusal: RefusedAdmission): RefusedAdmission | null;
  /** Refuses if `most` or more of the client's commands were not dispatched yet. */
  queueFull(client: C, most: number, refusal: RefusedAdmission): RefusedAdmission | null;
  /** Refuses an id that a caller chose if there is no room for its mark. */
  noMark(client: C, commandId: string): ShareRefusal | null;
  /** Refuses params that exceed what the user may hold in its queues. */
  noRoom(client: C, params: JsonText): ShareRefusal | null;
  /** Returns in how many milliseconds the bucket will have a token: 0 if it has one now, or if `takeToken` decides. */
  waitForToken(rate: CallerRate): number;
  /**
   * Whether a wait may be registered: the command has fewer than `most` waits, or already has this one. In a preview,
   * `waiter` has only `waitFor`.
   */
  canWait(entry: E, waiter: Pick<NewWaiter, 'waitFor'>, most: number): boolean;

  // Writes.
  /**
   * Adds a command with its reservation and its deadline. Adds its mark too, if there is room or if the caller chose
   * the id. Its params count as queued bytes, unless the command was dispatched in this same act.
   */
  add(client: C, request: AdmitRequest, command: Command, markedBy: string | null): E;
  /** Takes a token from the bucket. Called only after `waitForToken` returned 0. */
  takeToken(rate: CallerRate): void;
  /** Reserves room for the mark of an existing command, if there is room and none is reserved yet. */
  reserveMark(entry: E): void;
  /**
   * Registers a wait. Does nothing if the command already has a wait with the same rpc id, because the request was
   * repeated.
   */
  wait(entry: E, waiter: NewWaiter): void;
  /** Writes a history row of a command. */
  retain(entry: E, row: CommandMessage): void;
  /** Posts the command to the node of the client's link, unless the link is still opening. */
  offer(entry: E, nodeId: string): void;
  /** Posts a row to the mailbox of a node. */
  post(nodeId: string, row: CommandRow): void;
  /** Replaces the record. */
  move(entry: E, command: Command): void;
  /**
   * Replaces the record of a command that is queued on `command.nodeId` now. From now on its connect deadline no longer
   * applies.
   */
  queue(entry: E, command: Command): void;
  /**
   * Replaces the record of a command that is dispatched now, and returns its params. The params no longer count as
   * queued bytes, unless the store keeps them until the client reports on the command.
   */
  run(entry: E, command: Command, markedBy: string | null): JsonText | null;
  /** Discards the stored params of a command, because the command has arrived at its client. */
  arrived(entry: E): void;
  noteProgress(entry: E, progress: Progress): void;
  /** Tells deduplication that a message with the end of a command arrived. */
  countEnd(isNew: boolean): void;
  /** Replies to each wait that the record now satisfies, and removes the wait. */
  reply(entry: E): void;
  /** Replaces the record by the terminal one, stores the result, frees the reservation, and replies to the waits. */
  end(entry: E, command: Command, result: JsonText | null): void;
  /** Binds a client to a link, or unbinds it (null). If a queue moves in parts, called for each part. */
  bind(key: ClientKey, binding: Binding | null): void;

  /** Returns the SHA-256 of a text. */
  sha256(text: string): string;
}

export type MemberLimits = { readonly above: number; readonly most: number };
