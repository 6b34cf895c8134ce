/** The channel between the tabs of this browser. */
import { RELAY_PATH } from './base.ts';

/** In session storage: the user signed this tab out, so it takes no token of another tab. */
export const LEFT = 'callboard:signed-out';

export const tabs: BroadcastChannel | null =
  RELAY_PATH === '' && 'BroadcastChannel' in globalThis ? new BroadcastChannel('callboard:session') : null;
