import type { Clock } from '../link/clock.ts';
import { PASSING, type Refused } from './deliverer.ts';
import { SiteRefusedError } from './errors.ts';
import { MAX_SITES, RESEND_MS } from './limits.ts';

export type SitesOptions = {
  readonly clock: Clock;
  /** False: there is no link. `payload` null removes the site. */
  send(frame: { readonly ref: string; readonly siteId: string; readonly payload: string | null }): boolean;
};

type Waiting = { resolve(): void; reject(error: Error): void };
type Entry = {
  readonly siteId: string;
  /** What the relay took last; null: nothing. */
  accepted: string | null;
  /** What it is to have; null: nothing. */
  wanted: string | null;
  /** Of the last frame: its answer is the answer to all who wait. */
  ref: string;
  waiting: Waiting[];
};

/**
 * The sites as this client wants them at the relay, told anew with each link. A wish that the relay refuses gives way to what it took
 * before.
 */
export class Sites {
  readonly #options: SitesOptions;
  readonly #entries = new Map<string, Entry>();
  /** What was sent over this link and not answered yet, by its ref. */
  readonly #sent = new Map<string, { readonly entry: Entry; readonly payload: string | null }>();
  #refs = 0;
  #ended: Error | null = null;

  constructor(options: SitesOptions) {
    this.#options = options;
  }

  /**
   * `payload` null removes. Resolves when the relay took this wish or one that followed it; rejects with SiteRefusedError, or with what
   * `close` was given.
   */
  wish(siteId: string, payload: string | null): Promise<void> {
    if (this.#ended) return Promise.reject(this.#ended);
    const known = this.#entries.get(siteId);
    if (!known && this.#entries.size >= MAX_SITES) {
      return Promise.reject(new SiteRefusedError('capacity_exceeded', `A client hosts at most ${MAX_SITES} sites.`));
    }
    const entry = known ?? { siteId, accepted: null, wanted: null, ref: '', waiting: [] };
    this.#entries.set(siteId, entry);
    entry.wanted = payload;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    entry.waiting.push({ resolve, reject });
    this.#send(entry);
    return promise;
  }

  /** There is a new link. */
  welcomed(): void {
    this.#sent.clear();
    for (const entry of this.#entries.values()) this.#send(entry);
  }

  taken(ref: string): void {
    const sent = this.#answered(ref);
    if (!sent) return;
    const { entry, payload } = sent;
    entry.accepted = payload;
    if (entry.ref !== ref) return;
    if (payload === null) this.#entries.delete(entry.siteId);
    for (const waiting of entry.waiting.splice(0)) waiting.resolve();
  }

  /** A frame of another kind was refused: nothing happens. */
  refused({ code, message, frame, ref, retry_after_ms }: Refused): void {
    const sent = frame === 'site' && ref !== undefined ? this.#answered(ref) : undefined;
    if (!sent || sent.entry.ref !== ref) return;
    const { entry, payload } = sent;
    if (PASSING.has(code)) return this.#again(entry, Math.max(RESEND_MS, retry_after_ms ?? 0));
    entry.wanted = payload === null && code === 'not_found' ? null : entry.accepted;
    if (entry.wanted === null) this.#entries.delete(entry.siteId);
    const error = new SiteRefusedError(code, message);
    for (const waiting of entry.waiting.splice(0)) waiting.reject(error);
  }

  /** There will be no link any more. */
  close(error: Error): void {
    this.#ended = error;
    this.#sent.clear();
    for (const entry of this.#entries.values()) {
      for (const waiting of entry.waiting.splice(0)) waiting.reject(error);
    }
    this.#entries.clear();
  }

  #send(entry: Entry): void {
    entry.ref = `s-${++this.#refs}`;
    const sent = this.#options.send({ ref: entry.ref, siteId: entry.siteId, payload: entry.wanted });
    if (sent) this.#sent.set(entry.ref, { entry, payload: entry.wanted });
  }

  #again(entry: Entry, ms: number): void {
    const { ref } = entry;
    this.#options.clock.after(ms, () => {
      if (entry.ref === ref && this.#entries.get(entry.siteId) === entry) this.#send(entry);
    });
  }

  #answered(ref: string): { readonly entry: Entry; readonly payload: string | null } | undefined {
    const sent = this.#sent.get(ref);
    this.#sent.delete(ref);
    return sent;
  }
}
