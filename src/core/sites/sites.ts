/** Puts together the API of cooperative sites. */
import type { Sites } from '../core.ts';
import type { InvokeParts } from '../rpc/layers.ts';
import { invokeSite } from './invoke.ts';
import { createRegistry } from './registry.ts';
import { createSessions } from './sessions.ts';
import { listen, subscribe } from './subscribe.ts';
import { createTokens } from './tokens.ts';
import { createSessionWatch } from './watch.ts';

/** Creates the API of cooperative sites: definitions, sessions with their grants, live events, and actions. */
export function createSites(parts: InvokeParts): Sites {
  const { deps } = parts;
  const watch = createSessionWatch(deps);
  // One object for all viewers, because there may be thousands.
  const viewing = { watch, clock: deps.clock };
  return {
    ...createRegistry(deps, watch),
    ...createSessions(deps, watch),
    ...createTokens(deps),
    listen: (requester, sessionId, names) => listen(deps, viewing, { requester, sessionId, names }),
    subscribe: (requester, sessionId, names) => subscribe(deps, viewing, { requester, sessionId, names }),
    invoke: (requester, sessionId, request) => invokeSite(parts, { requester, sessionId, request }),
  };
}
