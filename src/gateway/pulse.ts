import { BACK_PRESSURE_MS, DEAD_MS, PING_MS } from '../core/limits.ts';
import type { CloseReason } from '../protocol/close.ts';

/**
 * Length of a beat. The gateway beats once for all its links, and a link counts in beats: after the process itself was held up, beats are
 * missing, so that nobody is thought dead whose frames only lie unread.
 */
export const BEAT_MS = 1_000;
const PING = PING_MS / BEAT_MS;
const DEAD = DEAD_MS / BEAT_MS;
const BEHIND = BACK_PRESSURE_MS / BEAT_MS;

/** What one link's time says should be done now. */
export type Due = 'nothing' | 'ping' | CloseReason;

/** The heartbeat of one link: signs of life, silence, and for how long its socket has been behind. */
export class Pulse {
  readonly #born: number;
  #heard: number;
  #touched: number | null = null;
  #behindSince: number | null = null;

  constructor(beat: number) {
    this.#born = beat;
    this.#heard = beat;
  }

  /** A frame came. True for the first one of this beat: then the sign of life is worth noting. */
  hear(beat: number): boolean {
    this.#heard = beat;
    const first = this.#touched !== beat;
    this.#touched = beat;
    return first;
  }

  due(beat: number, behind: boolean): Due {
    if (beat - this.#heard >= DEAD) return 'heartbeat_lost';
    if (!behind) this.#behindSince = null;
    else if (this.#behindSince === null) this.#behindSince = beat;
    else if (beat - this.#behindSince >= BEHIND) return 'back_pressure';
    return (beat - this.#born) % PING === 0 ? 'ping' : 'nothing';
  }
}
