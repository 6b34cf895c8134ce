/** Registers and removes cooperative sites over the link, and repeats this after each reconnect. */
import type { Clock } from '../link/platform.ts';
import { TEMPORARY_CODES, type Refused } from './deliverer.ts';
import { SiteRefusedError, MAX_SITES, RESEND_MS } from './ends.ts';
export type HostedSitesOptions = {
  readonly clock: Clock;
  /** Returns false when there is no link. `payload` null removes the site. */
  send(frame: { readonly ref: string; readonly siteId: string; readonly payload: string | null }): boolean;
};

type Waiting = { resolve(): void; reject(error: Error): void };
type Entry = {
  readonly siteId: string;
  /** The definition that the relay accepted last; null: none. */
  accepted: string | null;
  /** The definition that the relay is to have; null: none. */
  wanted: string | null;
  /** The ref of the last frame. Its answer settles all waiting promises. */
  ref: string;
  waiting: Waiting[];
};

/**
 * The sites that this client hosts, sent again on each new link. If the relay refuses a definition, the one that it
 * accepted before stays in force.
 */
export class HostedSites {
  readonly #options: HostedSitesOptions;
  readonly #entries = new Map<string, Entry>();
  /** The frames that were sent over this link and have not been answered, by ref. */
  readonly #sent = new Map<string, { readonly entry: Entry; readonly payload: string | null }>();
  #refs = 0;
  #ended: Error | null = null;

  constructor(options: HostedSitesOptions) {
    this.#options = options;
  }

  /**
   * Registers a site, or removes it with `payload` null. Resolves when the relay has accepted this request or a later
   * one for the same site. Rejects with SiteRefusedError, or with the error that was passed to `close`.
   */
  request(siteId: string, payload: string | null): Promise<void> {
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

  /** Sends the definitions of all sites again. Called for each new link. */
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

  /** Handles the refusal of a `site` frame. Ignores refusals of other frames. */
  refused({ code, message, frame, ref, retry_after_ms }: Refused): void {
    const sent = frame === 'site' && ref !== undefined ? this.#answered(ref) : undefined;
    if (!sent || sent.entry.ref !== ref) return;
    const { entry, payload } = sent;
    if (TEMPORARY_CODES.has(code)) return this.#resendIn(entry, Math.max(RESEND_MS, retry_after_ms ?? 0));
    entry.wanted = payload === null && code === 'not_found' ? null : entry.accepted;
    if (entry.wanted === null) this.#entries.delete(entry.siteId);
    const error = new SiteRefusedError(code, message);
    for (const waiting of entry.waiting.splice(0)) waiting.reject(error);
  }

  /** Called when the link is closed permanently. */
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

  #resendIn(entry: Entry, ms: number): void {
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
