/** Computes the time window of a request for series: its steps, and the slots from which they are computed. */
import { invalid } from '../errors.ts';
import { within } from '../ids.ts';
import { SERIES_POINTS, SERIES_POINTS_DEFAULT, SERIES_WINDOW_SECONDS } from '../limits.ts';
import { COARSE, FINE, type ReadingQuery } from './reading.ts';

type SeriesWindow = Omit<ReadingQuery, 'names'>;

/**
 * Returns the window that ends now. Its last step includes the slot that is still open. The step is rounded up to whole
 * slots, and further until there are at most SERIES_POINTS points. Throws `invalid_argument` if the window is out of
 * range, or if the step is not above zero.
 */
export function windowOf(windowSeconds: number, stepSeconds: number | null, now: number): SeriesWindow {
  const windowMs = within('window_seconds', windowSeconds, SERIES_WINDOW_SECONDS) * 1000;
  if (stepSeconds !== null && !(stepSeconds > 0)) invalid('step_seconds', 'expected more than 0');
  const { slotMs } = windowMs <= FINE.slotMs * FINE.slots ? FINE : COARSE;
  const asked = stepSeconds === null ? windowMs / SERIES_POINTS_DEFAULT : stepSeconds * 1000;
  const stepMs = Math.ceil(Math.max(asked, windowMs / SERIES_POINTS) / slotMs) * slotMs;
  const points = Math.ceil(windowMs / stepMs);
  const end = (Math.floor(now / slotMs) + 1) * slotMs;
  return { from: end - points * stepMs, slotMs, stepMs, points };
}
