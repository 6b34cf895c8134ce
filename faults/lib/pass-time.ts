/** Moves the clock of a relay under test forward in steps, so that hours pass in seconds. */
import type { Relay } from './relay.ts';

/**
 * The length of a step in milliseconds. It must be shorter than the silence after which a relay closes a link, so that
 * open links survive.
 */
const STEP_MS = 10_000;
/** The pause after each step, in milliseconds, in which clients answer pings. */
const PAUSE_MS = 2;

/** Advances the stepped clock of a relay by `ms`, slowly enough for its links to answer pings. */
export async function passTime(relay: Relay, ms: number): Promise<void> {
  for (let moved = 0; moved < ms; moved += STEP_MS) {
    await relay.advance(Math.min(STEP_MS, ms - moved));
    await new Promise((done) => setTimeout(done, PAUSE_MS));
  }
}
