import type { Sites } from '../core.ts';
import type { InvokeParts } from '../rpc/invoke.ts';
import { invokeSite } from './invoke.ts';
import { createRegistry } from './registry.ts';
import { createSessions } from './sessions.ts';
import { subscribe } from './subscribe.ts';
import { createTokens } from './tokens.ts';
import { createSessionWatch } from './watch.ts';

/** The room of cooperative sites: definitions, sessions with their grants, live events, and actions. */
export function createSites(parts: InvokeParts): Sites {
  const { deps } = parts;
  const watch = createSessionWatch(deps);
  return {
    ...createRegistry(deps, watch),
    ...createSessions(deps, watch),
    ...createTokens(deps),
    subscribe: (who, sessionId, names) => subscribe(deps, watch, { who, sessionId, names }),
    invoke: (who, sessionId, request) => invokeSite(parts, { who, sessionId, request }),
  };
}
