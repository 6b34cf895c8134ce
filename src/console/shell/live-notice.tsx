/** Shows a notice that live updates have stopped, and the button that pauses them. */
import { brokenSince, liveState, missedEvents, paused } from '../api/live-state.ts';
import { now } from '../api/visible.ts';
import { age, plural } from '../ui/format.ts';
import { Icon } from '../ui/icon.tsx';
import { useKeys } from './keys.ts';

/** The time for which the stream may be broken before the page shows it, in milliseconds. */
const SHOWN_AFTER_MS = 3_000;

export function LiveNotice() {
  const since = brokenSince.value;
  const missed = missedEvents.value;
  const broken = liveState.value === 'broken' && since !== null && now.value - since >= SHOWN_AFTER_MS;
  if (!broken && missed === 0) return null;
  return (
    <div class="notice" role="status">
      <Icon name="info" />
      <p>
        {broken && <b>Live updates stopped {age(now.value - since)} ago. </b>}
        {broken && 'What is shown stays; it is read again when the stream is back. '}
        {missed > 0 && `${plural(missed, 'event')} came faster than this page could show, so it was read again.`}
      </p>
    </div>
  );
}

export function PauseButton() {
  const toggle = (): void => void (paused.value = !paused.value);
  useKeys({ '.': toggle });
  return (
    <button class="btn" type="button" onClick={toggle} aria-keyshortcuts=".">
      <Icon name={paused.value ? 'play' : 'pause'} />
      {paused.value ? 'Go on live' : 'Pause live'}
    </button>
  );
}
