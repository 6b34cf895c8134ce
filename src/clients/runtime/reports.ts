/** Reports the contexts and windows of a client to the relay, at a bounded rate. */
import { CONTEXTS_MAX, WINDOWS_MAX } from '../../protocol/frames.ts';
import type { Clock } from '../link/platform.ts';
import { TEMPORARY_CODES, type Refused } from './deliverer.ts';
import { REPORT_RATE, REPORT_WAIT_MS, RESEND_MS, byteLength } from './ends.ts';
import {
  ReportState,
  contextRow,
  windowRow,
  type Part,
  type ReportChanges,
  type ReportedContext,
  type ReportedWindow,
} from './report-rows.ts';

/** The codes of refusals that say that a limit of the relay is used up. The relay may accept the report later. */
const NO_ROOM: ReadonlySet<string> = new Set(['share_exceeded', 'store_full']);

type ReporterOptions = {
  readonly clock: Clock;
  /** Returns false when there is no link. */
  send(payload: string): boolean;
};

/** Either all rows, as a list, or only the changes. */
export type RowsUpdate<T> = readonly T[] | ReportChanges<T>;

/**
 * Reports the current contexts and windows to the relay: a snapshot on each new link, then changes. All changes of one
 * event-loop turn go into one report. Above REPORT_RATE, changes are delayed and combined.
 */
export class Reporter {
  readonly #options: ReporterOptions;
  readonly #contexts = new ReportState<ReportedContext>({ kind: 'contexts', max: CONTEXTS_MAX, row: contextRow });
  readonly #windows = new ReportState<ReportedWindow>({ kind: 'windows', max: WINDOWS_MAX, row: windowRow });
  readonly #mayReport: () => boolean;
  #maxFrame: number | null = null;
  #due = false;

  constructor(options: ReporterOptions) {
    this.#options = options;
    this.#mayReport = createThrottle(options.clock, REPORT_RATE);
  }

  /** Sets or changes the contexts. Throws TypeError, naming the wrong member, and then changes nothing. */
  contexts(update: RowsUpdate<ReportedContext>): void {
    apply(this.#contexts, update);
    this.#schedule();
  }

  /** Sets or changes the windows. Throws like `contexts`. */
  windows(update: RowsUpdate<ReportedWindow>): void {
    apply(this.#windows, update);
    this.#schedule();
  }

  /** Called for each new link. Nothing has been reported on it yet. */
  welcomed(maxFrame: number): void {
    this.#maxFrame = maxFrame;
    this.#sendSnapshot();
  }

  /**
   * Reports everything again after a temporary refusal: the refused report is lost, and the relay does not say which
   * one it was.
   */
  refused({ frame, code, retry_after_ms }: Refused): void {
    if (frame !== 'report' || !(TEMPORARY_CODES.has(code) || NO_ROOM.has(code))) return;
    this.#forget();
    this.#scheduleIn(Math.max(RESEND_MS, retry_after_ms ?? 0));
  }

  #schedule(): void {
    if (this.#due) return;
    this.#due = true;
    queueMicrotask(() => {
      if (this.#mayReport()) this.#send();
      else this.#options.clock.after(REPORT_WAIT_MS, () => this.#send());
    });
  }

  #scheduleIn(ms: number): void {
    if (this.#due) return;
    this.#due = true;
    this.#options.clock.after(ms, () => this.#send());
  }

  #sendSnapshot(): void {
    this.#forget();
    this.#send();
  }

  #forget(): void {
    this.#contexts.forget();
    this.#windows.forget();
  }

  /** Reports what is due. Before the first `welcome` nothing is sent; each new link begins with a snapshot. */
  #send(): void {
    this.#due = false;
    if (this.#maxFrame === null) return;
    const parts = { contexts: this.#contexts.take(), windows: this.#windows.take() };
    for (const payload of reportPayloads(parts, this.#maxFrame)) this.#options.send(payload);
  }
}

function apply<T>(state: ReportState<T>, update: RowsUpdate<T>): void {
  if (isList(update)) state.replace(update);
  else state.change(update);
}

function isList<T>(update: RowsUpdate<T>): update is readonly T[] {
  return Array.isArray(update);
}

// Splits a report of contexts and windows into payloads that fit into frames.

type ReportKind = 'contexts' | 'windows';
type Parts = Readonly<Partial<Record<ReportKind, Part | null>>>;

type Piece = { readonly kind: ReportKind; readonly list: 'set' | 'removed'; readonly json: string };
type Draft = { bytes: number; readonly pieces: Piece[]; readonly snapshots: ReadonlySet<ReportKind> };

const KINDS: readonly ReportKind[] = ['contexts', 'windows'];
/** The number of bytes of a frame that are reserved for the header and for the JSON around the rows. */
const AROUND_BYTES = 256;

/**
 * Splits the parts into the payloads of one or more reports, in order. A large snapshot continues in the next reports.
 */
function reportPayloads(parts: Parts, maxFrameBytes: number): readonly string[] {
  const present = KINDS.filter((kind) => parts[kind]);
  let draft = begin(present.filter((kind) => parts[kind]?.snapshot));
  const payloads: string[] = [];
  for (const piece of present.flatMap((kind) => piecesOf(kind, parts[kind]))) {
    const bytes = byteLength(piece.json) + 1;
    if (draft.pieces.length > 0 && draft.bytes + bytes > maxFrameBytes) {
      payloads.push(payloadOf(draft));
      draft = begin([]);
    }
    draft.pieces.push(piece);
    draft.bytes += bytes;
  }
  return present.length === 0 ? [] : [...payloads, payloadOf(draft)];
}

function begin(snapshots: readonly ReportKind[]): Draft {
  return { bytes: AROUND_BYTES, pieces: [], snapshots: new Set(snapshots) };
}

function piecesOf(kind: ReportKind, part: Part | null | undefined): Piece[] {
  const removed = (part?.removed ?? []).map((id) => ({ kind, list: 'removed' as const, json: JSON.stringify(id) }));
  const set = (part?.set ?? []).map((json) => ({ kind, list: 'set' as const, json }));
  return [...removed, ...set];
}

function payloadOf({ pieces, snapshots }: Draft): string {
  const parts = KINDS.flatMap((kind) => {
    const own = pieces.filter((piece) => piece.kind === kind);
    const members = [
      ...(snapshots.has(kind) ? ['"snapshot":true'] : []),
      ...(['set', 'removed'] as const).flatMap((list) => listOf(own, list)),
    ];
    return members.length === 0 ? [] : [`"${kind}":{${members.join(',')}}`];
  });
  return `{${parts.join(',')}}`;
}

function listOf(pieces: readonly Piece[], list: Piece['list']): string[] {
  const json = pieces.filter((piece) => piece.list === list).map((piece) => piece.json);
  return json.length === 0 ? [] : [`"${list}":[${json.join(',')}]`];
}

// Limits how many times per second something may happen.

/**
 * Creates a token bucket that holds `perSecond` tokens at most and gains as many each second. The returned function
 * takes a token; it returns false when there is none.
 */
export function createThrottle(clock: Clock, perSecond: number): () => boolean {
  let tokens = perSecond;
  let at = clock.now();
  return () => {
    const now = clock.now();
    tokens = Math.min(perSecond, tokens + (Math.max(0, now - at) * perSecond) / 1000);
    at = now;
    if (tokens < 1) return false;
    tokens -= 1;
    return true;
  };
}
