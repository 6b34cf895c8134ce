import type { Sites } from '../core.ts';
import type { InvokeParts } from '../rpc/invoke.ts';
import { invokeSite } from './invoke.ts';
import { createRegistry } from './registry.ts';
import { createSessions } from './sessions.ts';
import { listen, subscribe } from './subscribe.ts';
import { createTokens } from './tokens.ts';
import { createSessionWatch } from './watch.ts';

/** The API of cooperative sites: definitions, sessions with their grants, live events, and actions. */
export function createSites(parts: InvokeParts): Sites {
  const { deps } = parts;
  const watch = createSessionWatch(deps);
  // One object for all viewers, because there may be thousands.
  const viewing = { watch, clock: deps.clock };
  return {
    ...createRegistry(deps, watch),
    ...createSessions(deps, watch),
    ...createTokens(deps),
    listen: (who, sessionId, names) => listen(deps, viewing, { who, sessionId, names }),
    subscribe: (who, sessionId, names) => subscribe(deps, viewing, { who, sessionId, names }),
    invoke: (who, sessionId, request) => invokeSite(parts, { who, sessionId, request }),
  };
}
