/** Holds the state of live updates in this tab, which the top bar shows, and whether the user has paused them. */
import { signal } from '@preact/signals';

/**
 * The state of the tab's event stream. `off`: the page has no live updates. `asking`: the page cannot have a stream and
 * repeats its requests instead. `broken`: the stream broke and is being opened again.
 */
type LiveState = 'off' | 'opening' | 'live' | 'asking' | 'broken';

export const liveState = signal<LiveState>('off');

/** Whether the user has paused the tab. While true, the tab neither streams nor repeats requests. */
export const paused = signal(false);

/** The time at which the stream broke, in epoch milliseconds; null while it is up. */
export const brokenSince = signal<number | null>(null);

/** The number of events of the current subscription that were dropped, because the browser read too slowly. */
export const missedEvents = signal(0);
