/** The state of live updates in this tab: what the top bar shows, and the pause. */
import { signal } from '@preact/signals';

/**
 * The state of the tab's stream. `off`: the page has no live updates. `asking`: the page repeats its requests, because
 * no stream is free. `broken`: the stream is being opened again.
 */
export type LiveState = 'off' | 'opening' | 'live' | 'asking' | 'broken';

export const liveState = signal<LiveState>('off');

/** While true, the tab neither streams nor repeats requests. */
export const paused = signal(false);

/** When the stream broke, in epoch milliseconds; null while it is up. */
export const brokenSince = signal<number | null>(null);

/** Events that were dropped since the page was opened, because the browser read too slowly. */
export const missedEvents = signal(0);
