/** Publishes the events of sites to their viewers, and ends a viewer's stream when its session, grant or token ends. */
import type { Requester } from '../auth/principal.ts';
import type { Deps } from '../deps.ts';
import { CallboardError } from '../errors.ts';
import type { Lifetime, SharedSubscription } from '../live.ts';
import type { Clock } from '../ports.ts';
import { requireAllowed, sessionAccessOf } from './session-access.ts';
import { effectiveEvents } from './session-policy.ts';
import type { SessionReader, SessionWatch } from './session-watch.ts';
import { checkNames } from './site-definition.ts';
import { OWNER_GRANT, isGrantLive, isOpen, type SiteSession } from './site-session.ts';
import { siteKeyText, type SiteEvent, type SiteKey } from './site.ts';
import type { Message } from '../history/message.ts';
import type { JsonText } from '../json.ts';
import { thenDo, type MaybePromise } from '../maybe-promise.ts';
import { siteOfStream, projectSiteEvent, type Projection } from './projection.ts';

type ListenRequest = {
  readonly requester: Requester;
  readonly sessionId: string;
  readonly names: readonly string[] | null;
};

/** Subscribes a viewer to a site's events. See `listen` in `createSites`. */
export async function listen(
  deps: Deps,
  parts: ViewerOptions,
  request: ListenRequest,
): Promise<SharedSubscription<SiteEvent> | null> {
  const { requester, sessionId } = request;
  const access = await sessionAccessOf(deps, requester, { sessionId, scope: 'invoke' });
  const names = checkNames(request.names);
  if (!access || !requester) return null;
  requireAllowed(deps, access, { kind: 'subscribe', names });
  const { session, site, grant } = access;
  // Only the grant's names are checked here. The names of the site's definition are compared when an event is
  // published, so that a change of the definition takes effect at once.
  const effective = site && effectiveEvents(grant, site, names);
  const held = { sessionId, grantId: grant.grantId, tokenEndsAt: requester.expiresAt };
  return { ...eventsOf(deps, session, effective), lifetime: new ViewerLifetime(held, parts) };
}

/**
 * Returns the events of a site with one of these names; null: with any name. Requesters with the same names share one
 * sequence of events, even if their sessions differ.
 */
function eventsOf(
  { backend: { bus } }: Deps,
  { userId, siteId }: SiteKey,
  names: readonly string[] | null,
): Pick<SharedSubscription<SiteEvent>, 'key' | 'listen'> {
  return {
    key: JSON.stringify([userId, siteId, names]),
    listen(push) {
      const wanted = names && new Set(names);
      let lost = 0;
      return bus.subscribe(
        `site:${siteKeyText({ userId, siteId })}`,
        (event) => {
          if (wanted !== null && !wanted.has(event.name)) return;
          push(event, lost);
          lost = 0;
        },
        () => (lost = 1),
      );
    },
  };
}

type ViewerAccess = {
  readonly sessionId: string;
  readonly grantId: string;
  /** When the viewer's token expires, in epoch milliseconds; null if it does not expire. */
  readonly tokenEndsAt: number | null;
};

type ViewerOptions = { readonly watch: SessionWatch; readonly clock: Clock };

/**
 * The lifetime of one viewer's stream. It ends with the session, the grant or the token. A class, because there is one
 * for each viewer of each site.
 */
class ViewerLifetime implements Lifetime, SessionReader {
  readonly #sessionId: string;
  readonly #grantId: string;
  readonly #tokenEndsAt: number | null;
  readonly #parts: ViewerOptions;
  #ended: CallboardError | null = null;
  #target: Parameters<Lifetime['endWith']>[0] | null = null;

  constructor({ sessionId, grantId, tokenEndsAt }: ViewerAccess, parts: ViewerOptions) {
    this.#sessionId = sessionId;
    this.#grantId = grantId;
    this.#tokenEndsAt = tokenEndsAt;
    this.#parts = parts;
    parts.watch.watch(sessionId, this);
  }

  endWith(target: Parameters<Lifetime['endWith']>[0]): void {
    if (this.#ended) target.fail(this.#ended);
    else this.#target = target;
  }

  close(): void {
    this.#target = null;
    this.#parts.watch.unwatch(this.#sessionId, this);
  }

  sessionRead(session: SiteSession | null): void {
    this.#ended ??= this.#endOf(session, this.#parts.clock.now());
    if (!this.#ended || !this.#target) return;
    const target = this.#target;
    this.#target = null;
    target.fail(this.#ended);
  }

  /** Returns why the lifetime is over; null if it is not. */
  #endOf(session: SiteSession | null, now: number): CallboardError | null {
    if (!session || !isOpen(session, now)) return new CallboardError('session_inactive', 'The session is over.');
    const grant = session.grants.find((one) => one.grantId === this.#grantId);
    const held = this.#grantId === OWNER_GRANT || (grant !== undefined && isGrantLive(grant, now));
    if (!held) return new CallboardError('unauthenticated', 'The grant is over.');
    if (this.#tokenEndsAt !== null && now >= this.#tokenEndsAt)
      return new CallboardError('unauthenticated', 'The token has expired.');
    return null;
  }
}

/** Publishes the ingested events of sites on the event bus. */
export type Projector = ReturnType<typeof createProjector>;

/**
 * Creates the projector. Each site has one stream, which belongs to the site's owner. Only events of this stream are
 * published.
 */
export function createProjector({ backend }: Pick<Deps, 'backend'>) {
  return {
    /**
     * Publishes a message, if the projection rules permit. Called once for each message that ingestion stored, and
     * never for a duplicate. `text`: the whole payload, even if it was spilled.
     */
    project(message: Message, text: JsonText | null): MaybePromise<Projection> {
      const { suffix, userId } = message;
      if (suffix !== 'sites' && !suffix.startsWith('sites/')) return { published: false, refusedBy: null };
      const siteId = siteOfStream(suffix);
      const found = siteId === null ? [] : backend.sites.get([{ userId, siteId }]);
      return thenDo(found, ([site = null]): Projection => {
        const verdict = projectSiteEvent({ message, payload: text, site });
        if (verdict.refusedBy !== null) return { published: false, refusedBy: verdict.refusedBy };
        if (site) {
          const event = { ...verdict.event, messageId: message.id, publishedAt: message.at };
          backend.bus.publish(`site:${siteKeyText(site)}`, event);
        }
        return { published: true, refusedBy: null };
      });
    },
  };
}
