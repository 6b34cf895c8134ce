/** One act on commands: what the rules read of a store, and the methods with which they change it. Types only. */
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

/** A row about a command, which an act on the command posts. */
export type CommandRow = Extract<MailboxRow, { readonly key: CommandKey }>;

/** The rows of a command's progress: how many there are, and when the last one was retained. */
export type Progress = { readonly rows: number; readonly at: number };

/** A command as a store holds it, with what is no part of its record. Only a transaction changes it. */
export interface HeldCommand {
  readonly command: Command;
  /** The node that the command was last queued on. */
  readonly queuedOn: string | null;
  /** The attempt that dispatched it (see `attemptOf`); null if the store does not keep attempts. */
  readonly markedBy: string | null;
  /** Null before the first row of progress. */
  readonly progress: Progress | null;
}

/** What the rules read of a client: its link, and how many of its commands were not dispatched. */
export interface ClientView {
  readonly binding: Binding | null;
  readonly waiting: { readonly size: number };
}

/**
 * What happened to a client's link. `begun`: earlier acts have moved the first parts of the queue to this link (see
 * `Transaction.moving`). `received`: see `CommandStore.rebind`.
 */
export type Move = {
  readonly binding: Binding;
  readonly link: LinkMove;
  readonly begun?: boolean;
  readonly received?: Received | undefined;
};

/** The commands of a client that one act moves, each list in the order of admission. */
export interface MovingQueue<E> {
  /** The link that the client is bound to, even if the lease of its node is over. */
  readonly binding: Binding | null;
  /** Commands that were not dispatched. */
  readonly waiting: Iterable<E>;
  /** Commands that were admitted for the link to which the queue moves, after it came up. They come after `waiting`. */
  readonly arrived: Iterable<E>;
  /** Commands that were dispatched. Only the last part has them. */
  readonly running: Iterable<E>;
  /** Whether no further command moves that was known before this part. */
  readonly isLast: boolean;
}

/**
 * What a client reports of a context, while its link is up and until its connection is forgotten. `reported`: by this
 * instance, not as closed, and in its first life. `gone`: not so. `unknown`: the client's instance has not reported its
 * contexts.
 */
export type ContextState =
  { readonly kind: 'reported'; readonly instanceId: string } | { readonly kind: 'gone' | 'unknown' };

export type RefusedAdmission = Extract<AdmitResult, { readonly kind: 'refused' }>;

/** The members of a message about a command that a rule decides. If no id is given, the id is `<command>:<kind>`. */
export type CommandMessage = {
  readonly kind: MessageKind;
  readonly instanceId: string | null;
  readonly id?: string;
  readonly kept?: StoredPayload;
  readonly error?: TerminalError | null;
};

/**
 * One act on commands. A rule makes all its changes with these methods, and either all of them are applied or none. A
 * store may answer reads from a cache if it checks, when it writes, that the values that were read are still valid. A
 * guard may also leave its refusal to that check, and then returns null. `E` is a command and `C` a client as the store
 * holds them.
 */
export interface Transaction<E extends HeldCommand, C extends ClientView> {
  /** The time of the act, in epoch milliseconds. */
  readonly now: number;

  // Reads.
  /** Returns a live or ended command that has a record. */
  find(key: CommandKey): E | null;
  /** Returns what is left of an ended command without a record; `conflict` if its digest differs from the given one. */
  markOf(key: CommandKey, digest: string | null): CommandMark | 'conflict' | null;
  client(key: ClientKey): C;
  /**
   * Returns the commands of a client that move because of its link. A store may move a long queue in parts: then each
   * part is an act of its own, and returns the next commands in the order of admission.
   */
  moving(key: ClientKey, move: Move): MovingQueue<E>;
  /** Whether the client has another connection than the one in `seen`, or advertises other actions. */
  isOutdated(request: AdmitRequest): boolean;
  /** Whether a time has come, by the clock that decides deadlines. */
  isOver(deadline: number): boolean;
  /** Returns the params of a live command, as long as the store keeps them. */
  params(entry: E): JsonText | null;
  /**
   * Returns the params of a command that was dispatched, for writing it again; null: they were given up. Absent params
   * are kept as `{}`.
   */
  keptParams(entry: E): JsonText | null;
  /** Returns the recorded result, as long as it is retained. */
  result(entry: E): JsonText | null;
  /** Returns what a client reports of a context. */
  context(key: ClientKey, contextId: string): ContextState;
  /** Returns a pause that covers the call now; null if none does. */
  pauseOf(call: PausedCall): Pause | null;
  /** Returns how many reservations a scope holds. For answers only: guards compare the counts themselves. */
  reserved(scopeId: string): number;

  // Guards.
  /** Refuses if the scope holds `most` reservations or more. */
  scopeFull(scopeId: string, most: number, refusal: RefusedAdmission): RefusedAdmission | null;
  /** Refuses if the scope holds more than `above` reservations, and the user `most` of them or more. */
  memberFull(question: AdmitQuestion, limits: MemberLimits, refusal: RefusedAdmission): RefusedAdmission | null;
  /** Refuses if `most` or more commands of the client were not dispatched. */
  queueFull(client: C, most: number, refusal: RefusedAdmission): RefusedAdmission | null;
  /** Returns why an id that a caller chose may not be admitted: there is no room for its mark. */
  noMark(client: C, commandId: string): ShareRefusal | null;
  /** Returns why the params may not wait: they exceed what the user may hold. */
  noRoom(client: C, params: JsonText): ShareRefusal | null;
  /** Returns after how many milliseconds the bucket has a token; 0 if it has one, or if `takeToken` decides. */
  waitForToken(rate: CallerRate): number;
  /** Whether the command has fewer than `most` waits, or has this one. In a preview, `waiter` has only `waitFor`. */
  canWait(entry: E, waiter: Pick<NewWaiter, 'waitFor'>, most: number): boolean;

  // Writes.
  /**
   * Adds a command with its reservation, its deadline and, if there is room or the caller chose the id, its mark. Its
   * params count as waiting, unless it was dispatched in this same act.
   */
  add(client: C, request: AdmitRequest, command: Command, markedBy: string | null): E;
  /** Takes a token of the bucket. Called only if `waitForToken` returned 0. */
  takeToken(rate: CallerRate): void;
  /** Reserves room for the mark of a known command, if there is room and none is reserved yet. */
  reserveMark(entry: E): void;
  /** Registers a wait, unless the command has one with its rpc id, because the request is repeated. */
  wait(entry: E, waiter: NewWaiter): void;
  /** Retains a history row of a command. */
  retain(entry: E, row: CommandMessage): void;
  /** Posts the command to the node of the client's link, unless the link is still coming up. */
  offer(entry: E, nodeId: string): void;
  /** Posts a row to the mailbox of a node. */
  post(nodeId: string, row: CommandRow): void;
  /** Replaces the record. */
  move(entry: E, command: Command): void;
  /** Replaces the record of a command that is queued on `command.nodeId`. From now on only its deadline counts. */
  queue(entry: E, command: Command): void;
  /**
   * Replaces the record of a command that is dispatched now. Returns its params. They stop counting as waiting, unless
   * the store keeps them until the command is reported or has ended.
   */
  run(entry: E, command: Command, markedBy: string | null): JsonText | null;
  /** Gives up the params that are kept of a command, because it has arrived. */
  arrived(entry: E): void;
  noteProgress(entry: E, progress: Progress): void;
  /** Lets deduplication count one arrival of the message of an end. */
  countEnd(isNew: boolean): void;
  /** Replies to each wait that the record satisfies now, and removes it. */
  reply(entry: E): void;
  /** Replaces the record by its last one, keeps the result, frees the reservation and replies to the waits. */
  end(entry: E, command: Command, result: JsonText | null): void;
  /** Binds a client to a link, or to none. Called for each part of a queue that moves to a link. */
  bind(key: ClientKey, binding: Binding | null): void;

  /** Returns the SHA-256 of a text. */
  sha256(text: string): string;
}

export type MemberLimits = { readonly above: number; readonly most: number };
