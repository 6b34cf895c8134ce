/** The channel between the tabs of this browser. */
import { RELAY_PATH } from './base.ts';

/**
 * The key in session storage which records that the user signed this tab out. Such a tab takes no token from another
 * tab.
 */
export const LEFT = 'callboard:signed-out';

export const tabs: BroadcastChannel | null =
  RELAY_PATH === '' && 'BroadcastChannel' in globalThis ? new BroadcastChannel('callboard:session') : null;
