/**
 * Commands over Redis as this process holds them: the cache of live ones, from which the next act on them is decided
 * without a read, and a command in the transaction of one act.
 */
import type { Command } from '../../../core/commands/command.ts';
import type { HeldCommand, Progress } from '../../../core/commands/transaction.ts';
import { commandKeyText, type CommandKey } from '../../../core/ids.ts';
import { commandOf, endedRequest, extrasOf, splitRecord, stateText, textsOf, type StateExtras } from './record.ts';

/** A live command as this process last read or wrote it. */
export type Held = {
  readonly command: Command;
  /** What the state of the record has besides the command. */
  readonly extras: StateExtras;
  /** The text of the record's request (see record.ts). */
  readonly request: string;
  /** The waiters of the command, as the text in its client's HASH; null if they are not known. */
  readonly waits: string | null;
  /** The command's params as JSON; null if they are not known. */
  readonly params: string | null;
};

/**
 * The most commands in the cache, and the most characters. The oldest are dropped; each drop costs a slower act later.
 */
const MOST = 20_000;
const MOST_CHARS = 32 * 1024 * 1024;

/** The memory that a decoded command takes besides its texts, estimated in characters. */
const COMMAND_CHARS = 2_000;

type HeldTexts = Pick<Held, 'request' | 'waits' | 'params'> & { readonly state: string };

/** Decodes a live command from the texts of its record. */
export function heldCommand({ state, request, waits, params }: HeldTexts): Held {
  const texts = { state: textsOf(state), request: textsOf(request) };
  return { command: commandOf(texts), extras: extrasOf(texts.state), request, waits, params };
}

/**
 * Live commands whose records this process knows. A missing or outdated entry does no harm: Redis compares what an act
 * was decided by, and if it differs the act is decided again by what is read.
 */
export interface HeldCommands {
  get(key: CommandKey): Held | undefined;
  put(key: CommandKey, held: Held): void;
  drop(key: CommandKey): void;
}

/** Creates an empty cache. `most`: the most commands in it. */
export function createHeldCommands(most = MOST): HeldCommands {
  const known = new Map<string, Held>();
  let chars = 0;
  const remove = (name: string): void => {
    const held = known.get(name);
    if (!held) return;
    known.delete(name);
    chars -= sizeOf(held);
  };
  return {
    get: (key) => known.get(commandKeyText(key)),
    put(key, held) {
      const name = commandKeyText(key);
      remove(name);
      known.set(name, held);
      chars += sizeOf(held);
      for (const oldest of known.keys()) {
        if (known.size <= most && chars <= MOST_CHARS) break;
        remove(oldest);
      }
    },
    drop: (key) => remove(commandKeyText(key)),
  };
}

function sizeOf({ request, waits, params }: Held): number {
  return request.length + COMMAND_CHARS + (waits?.length ?? 0) + (params?.length ?? 0);
}

type Added = {
  readonly request: string;
  readonly params: string | null;
  readonly markedBy: string | null;
  readonly queuedBytes: number;
};

/**
 * A command in the transaction of one act: as it was read or remembered, and as the act leaves it. Only the transaction
 * changes it.
 */
export class Entry implements HeldCommand {
  command: Command;
  queuedOn: string | null;
  markedBy: string | null;
  progress: Progress | null;
  /** The bytes that its params hold of the share queued_bytes. */
  queuedBytes: number;
  /** Whether the relay made its id, and there was no room for its mark. */
  unmarked: boolean;
  /** When the record of an ended command is forgotten; null while the command is live. */
  forgetAt: number | null;
  /** The span of its result: '' if there is none, '-' if there was no room for it. */
  resultIn: string;
  /** Who waits for the command, as one text; null: not known. */
  waits: string | null;
  /** `waits` before the act, once the act has changed them. */
  waitsBefore: string | null = null;
  /** The key that has the record of an ended command; null while the command is live. */
  span: string | null;
  /** The node that the act posts the command to; null: none. */
  offeredTo: string | null = null;
  isChanged = false;
  readonly isNew: boolean;
  /** What was known of the command before the act; of a new command, its request and params. */
  readonly held: Held;

  private constructor(held: Held, { span, isNew }: { readonly span: string | null; readonly isNew: boolean }) {
    const { command, extras, waits } = held;
    this.held = held;
    this.command = command;
    this.span = span;
    this.isNew = isNew;
    this.waits = waits;
    this.queuedOn = extras.queuedOn;
    this.markedBy = extras.markedBy;
    this.progress = extras.progress;
    this.queuedBytes = extras.queuedBytes;
    this.unmarked = extras.unmarked;
    this.forgetAt = extras.forgetAt;
    this.resultIn = extras.resultIn;
  }

  /** A live command as this process remembers it. */
  static live(held: Held): Entry {
    return new Entry(held, { span: null, isNew: false });
  }

  /** A live command that was read. */
  static read(texts: { readonly state: string; readonly request: string; readonly waits: string }): Entry {
    return Entry.live(heldCommand({ ...texts, params: null }));
  }

  /** The record of an ended command. `span`: the key that has it. */
  static ended(whole: string, span: string): Entry {
    const held = heldCommand({ ...splitRecord(whole), waits: '', params: null });
    return new Entry(held, { span, isNew: false });
  }

  /** A command that the act adds. */
  static added(command: Command, { request, params, markedBy, queuedBytes }: Added): Entry {
    const of = { queuedOn: command.nodeId, markedBy, queuedBytes };
    const extras = { rev: 0, place: '', forgetAt: null, resultIn: '', progress: null, unmarked: false, ...of };
    return new Entry({ command, extras, request, waits: '', params }, { span: null, isNew: true });
  }

  /** The place in the client's queue; '' for a new command. Only Redis knows that of a new one. */
  get place(): string {
    return this.held.extras.place;
  }

  /** How the text in Redis begins. No other state that this command had or will have begins like that. */
  get start(): string {
    return `${this.held.extras.rev}\0${this.held.command.admittedAt}\0`;
  }

  /** Returns the text of the state after the act. `place`: that of a new command, which only Redis knows. */
  state(place = this.isNew ? '0' : this.place): string {
    return stateText(this.command, this.#extras(place));
  }

  #extras(place: string): StateExtras {
    const { queuedOn, markedBy, forgetAt, resultIn, progress, queuedBytes, unmarked } = this;
    const more = { queuedOn, markedBy, forgetAt, resultIn, progress, queuedBytes, unmarked };
    return { rev: this.#revAfter(), place, ...more };
  }

  /** An act that changes nothing writes nothing, so the next revision is left to the act that does. */
  #revAfter(): number {
    const { rev } = this.held.extras;
    if (this.isNew) return this.command.version;
    return this.isChanged ? rev + 1 : rev;
  }

  /** Returns the whole text of the record after the act. */
  whole(): string {
    return this.state() + endedRequest(this.held.request, this.command);
  }

  /**
   * Returns the command as this process remembers it after the act. `place`: as Redis answered it; '' if it did not.
   */
  remembered(place: string): Held {
    const { command, held, waits } = this;
    const extras = this.#extras(this.isNew ? place || '0' : this.place);
    return { command, extras, request: held.request, waits, params: held.params };
  }
}
