import { CONTEXTS_MAX, WINDOWS_MAX } from '../../protocol/report.ts';
import type { Clock } from '../link/clock.ts';
import { PASSING, type Refused } from './deliverer.ts';
import { REPORT_RATE, REPORT_WAIT_MS, RESEND_MS } from './limits.ts';
import { reportPayloads } from './report-frames.ts';
import { contextRow, windowRow, type ReportedContext, type ReportedWindow } from './report-rows.ts';
import { Shelf, type ReportChanges } from './report-shelf.ts';
import { createThrottle } from './throttle.ts';

/** A share of the relay is used up. The report may be accepted later. */
const NO_ROOM: ReadonlySet<string> = new Set(['share_exceeded', 'store_full']);

export type ReporterOptions = {
  readonly clock: Clock;
  /** Returns false when there is no link. */
  send(payload: string): boolean;
};

/** All rows (a list), or only the changes. */
export type Told<T> = readonly T[] | ReportChanges<T>;

/**
 * Reports the current contexts and windows to the relay: a snapshot on each new link, then changes, with all changes of
 * one turn in one report. Above REPORT_RATE, changes are delayed and combined.
 */
export class Reporter {
  readonly #options: ReporterOptions;
  readonly #contexts = new Shelf<ReportedContext>({ kind: 'contexts', max: CONTEXTS_MAX, row: contextRow });
  readonly #windows = new Shelf<ReportedWindow>({ kind: 'windows', max: WINDOWS_MAX, row: windowRow });
  readonly #mayTell: () => boolean;
  #maxFrame: number | null = null;
  #due = false;

  constructor(options: ReporterOptions) {
    this.#options = options;
    this.#mayTell = createThrottle(options.clock, REPORT_RATE);
  }

  /** Throws TypeError, naming the wrong member, and then changes nothing. */
  contexts(told: Told<ReportedContext>): void {
    keep(this.#contexts, told);
    this.#soon();
  }

  /** Like `contexts`. */
  windows(told: Told<ReportedWindow>): void {
    keep(this.#windows, told);
    this.#soon();
  }

  /** Called for each new link. Nothing has been reported on it yet. */
  welcomed(maxFrame: number): void {
    this.#maxFrame = maxFrame;
    this.#again();
  }

  /**
   * A temporarily refused report is lost, and the relay does not say which one it was. So everything is reported again.
   */
  refused({ frame, code, retry_after_ms }: Refused): void {
    if (frame !== 'report' || !(PASSING.has(code) || NO_ROOM.has(code))) return;
    this.#forget();
    this.#in(Math.max(RESEND_MS, retry_after_ms ?? 0));
  }

  #soon(): void {
    if (this.#due) return;
    this.#due = true;
    queueMicrotask(() => {
      if (this.#mayTell()) this.#tell();
      else this.#options.clock.after(REPORT_WAIT_MS, () => this.#tell());
    });
  }

  #in(ms: number): void {
    if (this.#due) return;
    this.#due = true;
    this.#options.clock.after(ms, () => this.#tell());
  }

  #again(): void {
    this.#forget();
    this.#tell();
  }

  #forget(): void {
    this.#contexts.forget();
    this.#windows.forget();
  }

  /** Reports what is due. Before the first `welcome` nothing is sent; each new link begins with a snapshot. */
  #tell(): void {
    this.#due = false;
    if (this.#maxFrame === null) return;
    const parts = { contexts: this.#contexts.take(), windows: this.#windows.take() };
    for (const payload of reportPayloads(parts, this.#maxFrame)) this.#options.send(payload);
  }
}

function keep<T>(shelf: Shelf<T>, told: Told<T>): void {
  if (isList(told)) shelf.replace(told);
  else shelf.change(told);
}

function isList<T>(told: Told<T>): told is readonly T[] {
  return Array.isArray(told);
}
