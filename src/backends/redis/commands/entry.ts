/** A command in the transaction of one act: as it was read or remembered, and as the act leaves it. */
import type { Command } from '../../../core/commands/command.ts';
import type { HeldCommand, Progress } from '../../../core/commands/transaction.ts';
import { heldCommand, type Held } from './held.ts';
import { commandOf, endedRequest, fieldOf, splitRecord, stateText } from './record.ts';

type Added = {
  readonly request: string;
  readonly params: string | null;
  readonly markedBy: string | null;
  readonly queuedBytes: number;
};

/** Only the transaction of the act changes an entry. */
export class Entry implements HeldCommand {
  command: Command;
  queuedOn: string | null;
  markedBy: string | null;
  progress: Progress | null;
  /** The bytes that its params hold of the share queued_bytes. */
  queuedBytes: number;
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
  /** How the text in Redis begins. No other state that this command had or will have begins like that. */
  readonly start: string;
  /** The place in the client's queue; '' for a new command. Only Redis knows that of a new one. */
  readonly place: string;
  readonly #rev: number;

  private constructor(held: Held, command: Command, { span, isNew }: { span: string | null; isNew: boolean }) {
    const field = (name: Parameters<typeof fieldOf>[1]): string => fieldOf(held.texts.state, name);
    this.held = held;
    this.command = command;
    this.span = span;
    this.isNew = isNew;
    this.waits = held.waits;
    this.queuedOn = field('queuedOn') || null;
    this.markedBy = field('markedBy') || null;
    const rows = field('progressRows');
    this.progress = rows === '' ? null : { rows: Number(rows), at: Number(field('progressRowAt')) };
    this.queuedBytes = Number(field('queuedBytes'));
    this.forgetAt = field('forgetAt') === '' ? null : Number(field('forgetAt'));
    this.resultIn = field('resultIn');
    this.place = field('place');
    this.#rev = Number(field('rev'));
    this.start = `${field('rev')}\0${field('admittedAt')}\0`;
  }

  /** A live command as this process remembers it. */
  static live(held: Held): Entry {
    return new Entry(held, commandOf(held.texts), { span: null, isNew: false });
  }

  /** A live command that was read. */
  static read(texts: { readonly state: string; readonly request: string; readonly waits: string }): Entry {
    return Entry.live(heldCommand({ ...texts, params: null }));
  }

  /** The record of an ended command. `span`: the key that has it. */
  static ended(whole: string, span: string): Entry {
    const held = heldCommand({ ...splitRecord(whole), waits: '', params: null });
    return new Entry(held, commandOf(held.texts), { span, isNew: false });
  }

  /** A command that the act adds. */
  static added(command: Command, { request, params, markedBy, queuedBytes }: Added): Entry {
    const held = heldCommand({ state: '', request, waits: '', params });
    const entry = new Entry(held, command, { span: null, isNew: true });
    entry.queuedOn = command.nodeId;
    entry.markedBy = markedBy;
    entry.queuedBytes = queuedBytes;
    return entry;
  }

  /** Returns the text of the state after the act. `place`: that of a new command, which only Redis knows. */
  state(place = this.isNew ? '0' : this.place): string {
    const { queuedOn, markedBy, forgetAt, resultIn, progress, queuedBytes } = this;
    const more = { queuedOn, markedBy, forgetAt, resultIn, progress, queuedBytes };
    return stateText(this.command, { rev: this.#revAfter(), place, ...more });
  }

  /** An act that changes nothing writes nothing, so the next revision is left to the act that does. */
  #revAfter(): number {
    if (this.isNew) return this.command.version;
    return this.isChanged ? this.#rev + 1 : this.#rev;
  }

  /** Returns the whole text of the record after the act. */
  whole(): string {
    return this.state() + endedRequest(this.held.request, this.command);
  }

  /**
   * Returns the command as this process remembers it after the act. `place`: as Redis answered it; '' if it did not.
   */
  remembered(place: string): Held {
    const { held } = this;
    const state = this.isNew && place !== '' ? this.state(place) : this.state();
    const { request, params } = held;
    return heldCommand({ state, request, waits: this.waits, params }, { request: held.texts.request });
  }
}
