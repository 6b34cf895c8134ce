/** Serves the routes of the control server: define a site, remove it, publish an event. */
import { ID } from '../../protocol/fields.ts';
import { systemClock } from '../link/platform.ts';
import type { Runtime, SiteDefinition } from '../runtime/types.ts';
import {
  HostError,
  ProblemError,
  createSiteEventPublisher,
  readDefinition,
  readEvent,
  requireLink,
  type HostResponse,
  type PublisherOptions,
} from './publisher.ts';

export type ControlSitesOptions = Omit<PublisherOptions, 'runtime' | 'siteId'> & { readonly runtime: Runtime };

/** One route. The body is read only after the route is known. */
type HostRoute = {
  readonly takesBody: boolean;
  answer(body: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<HostResponse>;
};

/** How long the relay may take to answer a registration or a removal. Milliseconds. */
const REGISTER_MS = 10_000;
const KEPT = 'The change is kept and sent to the relay at the next connection.';

/** Finds the route of a request. Throws ProblemError `not_found`, `method_not_allowed` or `invalid_argument`. */
export function findRoute(options: ControlSitesOptions, method: string, target: string): HostRoute {
  const [path = '', query] = target.split('?', 2);
  const [, encoded, events] = /^\/sites\/([^/]+)(\/events)?$/.exec(path) ?? [];
  const siteId = encoded === undefined ? null : decode(encoded);
  if (siteId === null || !ID.test(siteId)) throw new ProblemError('not_found', 'There is no resource at this path.');
  const routes = events === undefined ? siteRoutes(options, siteId) : eventRoutes(options, siteId);
  const route = routes.get(method);
  if (!route) {
    const allow = [...routes.keys()].join(', ');
    throw new ProblemError('method_not_allowed', `This path allows only ${allow}.`, { headers: { allow } });
  }
  if (query !== undefined && query !== '')
    throw new ProblemError('invalid_argument', 'This path takes no query parameters.');
  return route;
}

function siteRoutes(options: ControlSitesOptions, siteId: string): ReadonlyMap<string, HostRoute> {
  const { runtime } = options;
  const put: HostRoute = {
    takesBody: true,
    async answer(body) {
      const definition = readDefinition(siteId, body);
      await confirmed(options, runtime.site(definition).registered);
      return { status: 200, body: descriptorOf(runtime, definition) };
    },
  };
  const remove: HostRoute = {
    takesBody: false,
    async answer() {
      await confirmed(options, runtime.removeSite(siteId));
      return { status: 204 };
    },
  };
  return new Map([
    ['PUT', put],
    ['DELETE', remove],
  ]);
}

function eventRoutes(options: ControlSitesOptions, siteId: string): ReadonlyMap<string, HostRoute> {
  const publisher = createSiteEventPublisher({ ...options, siteId });
  const post: HostRoute = {
    takesBody: true,
    async answer(body, signal) {
      const { messageId, retained, duplicate, published, refusedBy } = await publisher.publish(readEvent(body), {
        signal,
      });
      const receipt = { message_id: messageId, retained, duplicate, published, refused_by: refusedBy };
      return { status: 200, body: receipt };
    },
  };
  return new Map([['POST', post]]);
}

/**
 * Waits until the relay confirms the change. Rejects without a link, and after REGISTER_MS. The runtime keeps the
 * change even then.
 */
async function confirmed({ runtime, clock = systemClock }: ControlSitesOptions, done: Promise<void>): Promise<void> {
  done.catch(() => {});
  const { promise: gone, reject } = Promise.withResolvers<never>();
  const late = new HostError('runtime_disconnected', `The relay did not answer in time. ${KEPT}`);
  const check = (): void => {
    try {
      requireLink(runtime);
    } catch {
      reject(new HostError('runtime_disconnected', `The runtime is not connected to the relay. ${KEPT}`));
    }
  };
  const cancelTimer = clock.after(REGISTER_MS, () => reject(late));
  const stop = runtime.onStatus(check);
  check();
  try {
    await Promise.race([done, gone]);
  } finally {
    cancelTimer();
    stop();
  }
}

function descriptorOf({ clientId, status }: Runtime, definition: SiteDefinition): object {
  const { siteId, title, eventNames, actions, capabilityProfile: profile } = definition;
  return {
    site_id: siteId,
    owner: status.state === 'connected' ? (status.welcome.user_id ?? null) : null,
    mode: 'cooperative',
    title: title ?? null,
    event_names: eventNames ?? [],
    actions: actions ?? [],
    capability_profile: { action_invocation: profile?.actionInvocation ?? false, sharing: profile?.sharing ?? false },
    client_id: clientId,
  };
}

/** Decodes percent-encoded text; null if its encoding is invalid. */
function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
