/** Reports the contexts and windows of a client to the relay, at a bounded rate. */
import { CONTEXTS_MAX, WINDOWS_MAX } from '../../protocol/report.ts';
import type { Clock } from '../link/clock.ts';
import { TEMPORARY_CODES, type Refused } from './deliverer.ts';
import { REPORT_RATE, REPORT_WAIT_MS, RESEND_MS } from './limits.ts';
import { reportPayloads } from './report-frames.ts';
import { contextRow, windowRow, type ReportedContext, type ReportedWindow } from './report-rows.ts';
import { ReportState, type ReportChanges } from './report-state.ts';
import { createThrottle } from './throttle.ts';

/** The codes of refusals that say that a limit of the relay is used up. The relay may accept the report later. */
const NO_ROOM: ReadonlySet<string> = new Set(['share_exceeded', 'store_full']);

export type ReporterOptions = {
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
