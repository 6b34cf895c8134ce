/** Shows the top bar: the environment, the answering node, the palette, and the state of live updates. */
import { useEffect, useState } from 'preact/hooks';
import { brokenSince, liveState, paused } from '../api/live-state.ts';
import { now } from '../api/visible.ts';
import { label, outage } from '../ui/page.tsx';
import { Icon } from '../ui/icons.tsx';
import { CopyLink, StateMark } from '../ui/values.tsx';
import { age } from '../ui/amounts.ts';
import { clockAt, zoneName } from '../ui/zones.ts';
import { isAdmin, isPagePolled, viewer } from './facts.tsx';
import { openPalette } from './palette.tsx';

export function Top() {
  const who = viewer.value;
  return (
    <header class={outage.value === null ? 'top' : 'top is-out'}>
      <button class="btn btn-icon btn-quiet menu-btn" type="button" popovertarget="rail" aria-label="Pages">
        <Icon name="menu" />
      </button>
      <Outage />
      <p class="place">
        <b class="env">{label || who?.nodeId || 'Callboard'}</b>
        {who && <span>{`${label ? `answered by ${who.nodeId}, ` : ''}${who.mode.toLowerCase()} mode`}</span>}
      </p>
      <button class="goto" type="button" onClick={openPalette}>
        <Icon name="search" />
        <span>{isAdmin.value ? 'Go to a user, client or command id' : 'Go to a client or command id'}</span>
        <kbd aria-hidden="true">Ctrl K</kbd>
      </button>
      <CopyLink />
      <p class="live" role="status">
        <LiveMark />
      </p>
    </header>
  );
}

/** Shows in the top bar since when the relay has not answered. The bar always has the same height, so nothing moves. */
function Outage() {
  const { value } = outage;
  return (
    <p class="outage" role="alert">
      {value && (
        <>
          <Icon name="warn" />
          <span>
            <b>{value.isSilent ? 'The relay has not answered' : 'Live updates stopped'}</b>{' '}
            {value.isSilent ? 'since ' : 'at '}
            {clockAt(value.since)} {zoneName()}
            <span class="outage-more">, {age(now.value - value.since)} ago. What is shown is of before.</span>
          </span>
        </>
      )}
    </p>
  );
}

function LiveMark() {
  if (outage.value !== null) return null;
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
    case 'off':
      return isPagePolled.value ? <StateMark shape="up">Live</StateMark> : null;
  }
}

/** How long the stream may be broken before the top bar shows it, in milliseconds. */
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
