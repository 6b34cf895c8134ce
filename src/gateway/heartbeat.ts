/** Decides when one link must be pinged, or closed because it is silent or does not read. Has no timer. */
import type { Clock } from '../core/clock.ts';
import { BACK_PRESSURE_MS, DEAD_MS, PING_MS, STALE_MS } from '../core/limits.ts';
import type { Metrics } from '../core/metrics.ts';
import type { CloseReason } from '../protocol/close.ts';

/**
 * The length of a beat, in milliseconds. The gateway has one timer for all its links, and a link measures silence in
 * beats. While the process is blocked no beats occur, so a peer whose frames are merely unread does not count as dead.
 */
export const BEAT_MS = 1_000;
const PING = PING_MS / BEAT_MS;
const DEAD = DEAD_MS / BEAT_MS;
const BEHIND = BACK_PRESSURE_MS / BEAT_MS;
/**
 * The number of beats after which a peer counts as silent. The last frame arrived during its beat, and the store has
 * its time a little later, so the connection is shown as stale at this beat and not before.
 */
const SILENT = STALE_MS / BEAT_MS + 2;

/** What a link must do at this beat. A close reason means that it must close with this reason. */
export type HeartbeatAction = 'nothing' | 'ping' | CloseReason;

/** The heartbeat of one link: when a frame last arrived, and for how long the socket has been behind. */
export class Heartbeat {
  readonly #firstBeat: number;
  #lastFrameBeat: number;
  #touched: number | null = null;
  #behindSince: number | null = null;
  /** When the ping was sent that is not answered yet, in milliseconds. */
  #pingedAt: number | null = null;

  constructor(beat: number) {
    this.#firstBeat = beat;
    this.#lastFrameBeat = beat;
  }

  /**
   * Records that a frame arrived. Returns true for the first frame of this beat: the caller then reports a sign of
   * life.
   */
  frameArrived(beat: number): boolean {
    this.#lastFrameBeat = beat;
    const first = this.#touched !== beat;
    this.#touched = beat;
    return first;
  }

  pinged(at: number): void {
    this.#pingedAt = at;
  }

  /** Measures the time since the ping that this pong answers, if there was one. */
  ponged({ clock, metrics }: { readonly clock: Clock; readonly metrics: Metrics }): void {
    if (this.#pingedAt !== null) metrics.observe('client_rtt_seconds', clock.monotonic() - this.#pingedAt);
    this.#pingedAt = null;
  }

  /** Whether the peer counts as silent from this beat on. */
  becameSilent(beat: number): boolean {
    return beat - this.#lastFrameBeat === SILENT;
  }

  due(beat: number, behind: boolean): HeartbeatAction {
    if (beat - this.#lastFrameBeat >= DEAD) return 'heartbeat_lost';
    if (!behind) this.#behindSince = null;
    else if (this.#behindSince === null) this.#behindSince = beat;
    else if (beat - this.#behindSince >= BEHIND) return 'back_pressure';
    return (beat - this.#firstBeat) % PING === 0 ? 'ping' : 'nothing';
  }
}
