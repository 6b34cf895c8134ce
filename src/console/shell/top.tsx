/** Shows the top bar: the environment, the node that answers, the palette, and the state of live updates. */
import { useEffect, useState } from 'preact/hooks';
import { brokenSince, liveState, paused } from '../api/live-state.ts';
import { now } from '../api/visible.ts';
import { age } from '../ui/format.ts';
import { Icon } from '../ui/icon.tsx';
import { StateMark } from '../ui/status.tsx';
import { viewer } from './facts.tsx';
import { label } from './label.ts';
import { openPalette } from './palette.tsx';

export function Top() {
  const who = viewer.value;
  return (
    <header class="top">
      <button class="btn btn-icon btn-quiet menu-btn" type="button" popovertarget="rail" aria-label="Pages">
        <Icon name="menu" />
      </button>
      <p class="place">
        <b class="env">{label || who?.nodeId || 'Callboard'}</b>
        {who && <span>{`${label ? `answered by ${who.nodeId}, ` : ''}${who.mode.toLowerCase()} mode`}</span>}
      </p>
      <button class="goto" type="button" onClick={openPalette}>
        <Icon name="search" />
        <span>Go to a user, client or command id</span>
        <kbd aria-hidden="true">Ctrl K</kbd>
      </button>
      <p class="live" role="status">
        <LiveMark />
      </p>
    </header>
  );
}

function LiveMark() {
  if (paused.value) return <StateMark shape="down">Paused</StateMark>;
  switch (liveState.value) {
    case 'live':
      return <StateMark shape="up">Live</StateMark>;
    case 'broken':
      return <Broken />;
    case 'opening':
      return <StateMark shape="recorded">Connecting</StateMark>;
    case 'asking':
      return <StateMark shape="up">Live, every 3 s</StateMark>;
    default:
      return null;
  }
}

/** The time for which the stream may be broken before the top bar shows it, in milliseconds. */
const QUIET_MS = 1_000;

function Broken() {
  const since = brokenSince.value ?? now.value;
  const [told, setTold] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setTold(true), QUIET_MS);
    return () => clearTimeout(timer);
  }, []);
  if (!told) return <StateMark shape="recorded">Connecting</StateMark>;
  return <StateMark shape="stale">{age(now.value - since)} behind</StateMark>;
}
