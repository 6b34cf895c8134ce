import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Principal } from '../core/auth/principal.ts';
import type { Clock } from '../core/clock.ts';
import type { Core } from '../core/core.ts';
import {
  INBOUND_BYTES_PER_SECOND,
  UNAUTHENTICATED_SOCKETS,
  UNAUTHENTICATED_SOCKETS_PER_ADDRESS,
} from '../core/limits.ts';
import type { Log } from '../core/log.ts';
import { ByteRates } from '../core/shares/byte-rate.ts';
import { createGateway } from '../gateway/gateway.ts';
import type { OriginRule } from '../gateway/origin.ts';
import { createContext } from '../graphql/context.ts';
import { createGraphqlDoor } from '../graphql/door.ts';
import type { Introspection } from '../graphql/limits.ts';
import { createMask } from '../graphql/mask.ts';
import { createPlans } from '../graphql/plan.ts';
import { schema, wireSchema } from '../graphql/schema.ts';
import { descriptorLimit } from '../platform/descriptors.ts';
import type { Meter } from '../platform/metrics.ts';
import { createRestDoor, type RestDoor } from '../rest/door.ts';
import { createAdmission } from './admission.ts';
import type { BearerAuthenticator } from './auth.ts';
import { createFront, type Front } from './front.ts';
import { meterShares } from './share-gauges.ts';
import { SITE_EVENTS_DESCRIPTION } from './site-events-description.ts';
import { createSiteEvents } from './site-events.ts';
import { Sockets } from './sockets.ts';
import { UnreadBytes } from './unread.ts';
import { createTokenGuard } from './token-guard.ts';

export type FacesOptions = {
  readonly core: Core;
  readonly authenticator: BearerAuthenticator;
  readonly log: Log;
  readonly meter: Meter;
  readonly clock: Clock;
  readonly randomId: () => string;
  readonly basePath: string;
  readonly maxBodyBytes: number;
  readonly origins: OriginRule;
  readonly introspection: Introspection;
  readonly clientFiles: URL;
  /** Open sockets of one address over which no good token came; default UNAUTHENTICATED_SOCKETS_PER_ADDRESS. */
  readonly unauthenticatedSockets?: number | undefined;
  /** What one user may send a second, over links and bodies together; default INBOUND_BYTES_PER_SECOND. */
  readonly inboundBytesPerSecond?: number | undefined;
  readonly version: string;
  /** Whether what is the same for many is made once for all of them; default true. The bytes are the same either way. */
  readonly fastPath?: boolean;
};

/** Every face of one relay behind one entrance. */
export type Faces = {
  readonly front: Front;
  /** Says goodbye to links and ends streams. Resolves once they are gone, or after two seconds. */
  close(): Promise<void>;
};

/** A peer that does not answer its close must not hold up the process. */
const GOODBYE_MS = 2_000;

export function createFaces(options: FacesOptions): Faces {
  const { core, log, meter, clock, basePath, origins, fastPath = true } = options;
  const guard = createTokenGuard({ clock, log, metrics: meter });
  const authenticator = guard.around(options.authenticator);
  const endpoint = `${basePath}/graphql`;
  const graphql = createGraphqlDoor({
    schema,
    core,
    log,
    metrics: meter,
    introspection: options.introspection,
    endpoint,
    fastPath,
  });
  const sockets = new Sockets({
    ...{ clock, log, metrics: meter, inAll: unauthenticatedSockets() },
    perAddress: origins.trustProxy ? null : (options.unauthenticatedSockets ?? UNAUTHENTICATED_SOCKETS_PER_ADDRESS),
  });
  const inbound = new ByteRates(clock, options.inboundBytesPerSecond ?? INBOUND_BYTES_PER_SECOND);
  const unread = new UnreadBytes({ shares: core.shares, clock, log, metrics: meter });
  const onWelcome = (socket: Duplex, who: Principal): void => {
    unread.serves(socket, { who });
    if (socket instanceof Socket) sockets.authenticated(socket);
  };
  const gateway = createGateway({ core, authenticator, log, metrics: meter, clock, inbound, onWelcome, ...origins });
  meter.gauge('links', 'Open links of clients and callers.', () => gateway.size);
  meter.gauge('waiters', 'Callers that wait for a command.', () => countWaiters(core));
  meterShares(meter, core.shares);
  const admission = createAdmission(authenticator, sockets);
  const siteEvents = createSiteEvents({ core, log, streams: graphql.streams, admission, guard, sockets, fastPath });
  const rest = createRest(options);
  const front = createFront({ ...options, admission, graphql, rest, gateway, siteEvents, sockets, inbound, unread });
  meter.gauge('unauthenticated_sockets', 'Open sockets over which no good token came.', () => sockets.unauthenticated);
  return {
    front,
    async close() {
      sockets.close();
      unread.close();
      const gone = Promise.all([gateway.closeAll('draining'), graphql.close()]);
      await Promise.race([gone, new Promise<void>((late) => clock.after(GOODBYE_MS, late))]);
    },
  };
}

/** The front takes paths below the base path; only the description names it. */
function createRest({ core, log, meter, basePath, version, fastPath = true }: FacesOptions): RestDoor {
  const door = createRestDoor({
    schema: wireSchema,
    plans: createPlans(wireSchema, { eager: true, fast: fastPath, keep: !core.capabilities.shared }),
    mask: createMask({ log, metrics: meter }),
    contextOf: (asked) => createContext({ core, log, ...asked }),
    basePath,
    version,
    besides: [SITE_EVENTS_DESCRIPTION],
  });
  return {
    ...door,
    handle: (request, response, asked) => door.handle(request, response, { ...asked, path: basePath + asked.path }),
  };
}

/** Half of what the process may open stays for others, whatever strangers do. */
function unauthenticatedSockets(): number {
  return Math.min(UNAUTHENTICATED_SOCKETS, Math.floor((descriptorLimit() ?? Infinity) / 2));
}

async function countWaiters(core: Core): Promise<number> {
  const { count } = await core.rpc.count({ kind: 'admin', name: 'metrics', expiresAt: null }, {});
  return count;
}
