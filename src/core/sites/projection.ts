/** Publishes retained messages to the viewers of a site, if the rules of projection allow it. */
import type { Deps } from '../deps.ts';
import type { Message } from '../history/message.ts';
import { fromJson, isObjectText, memberOf, type JsonText } from '../json.ts';
import { thenDo, type MaybePromise } from '../maybe-promise.ts';
import { isEventName } from './site-definition.ts';
import { siteKeyText, siteStream, type Site, type SiteEvent } from './site.ts';

/** The first rule of projection that a retained message did not meet, in the order in which the rules are checked. */
export type ProjectionRefusal = 'stream' | 'owner' | 'host' | 'name' | 'allowlist';

/**
 * The result of a projection. `refusedBy` is null if the message was published, and also if its stream is not under
 * `sites/` or the projection failed.
 */
export type Projection = { readonly published: boolean; readonly refusedBy: ProjectionRefusal | null };

/**
 * The longest JSON text of a name, in characters: 128 characters, each of which may be escaped as `\uXXXX`, and the
 * quotes.
 */
const NAME_TEXT = 128 * 6 + 2;

/** What the rules check. The message belongs to the user whose token ingested it. */
export type ProjectionFacts = {
  readonly message: Pick<Message, 'userId' | 'clientId' | 'suffix' | 'kind'>;
  readonly payload: JsonText | null;
  readonly site: Site | null;
};

type ProjectionVerdict =
  | { readonly refusedBy: ProjectionRefusal }
  | { readonly refusedBy: null; readonly event: Pick<SiteEvent, 'name' | 'data'> };

/**
 * Checks the rules in the documented order; each is only checked if those before it hold. The second documented rule,
 * that the host matches the descriptor, is `owner` and `host`: the user and the client that the site names. Pure.
 */
export function projectSiteEvent({ message, payload, site }: ProjectionFacts): ProjectionVerdict {
  const siteId = siteOfStream(message.suffix);
  if (siteId === null || message.kind !== 'event') return { refusedBy: 'stream' };
  if (site?.siteId !== siteId || site.userId !== message.userId) return { refusedBy: 'owner' };
  if (site.clientId !== message.clientId) return { refusedBy: 'host' };
  const members = payload !== null && isObjectText(payload) ? payload : null;
  const name = members && nameIn(members);
  if (!isEventName(name)) return { refusedBy: 'name' };
  if (site.eventNames.length > 0 && !site.eventNames.includes(name)) return { refusedBy: 'allowlist' };
  return { refusedBy: null, event: { name, data: (members && memberOf(members, 'data')) ?? null } };
}

/** Publishes retained events of sites on their bus topics. */
export type Projector = ReturnType<typeof createProjector>;

/**
 * Creates the projector. Each site has one stream, which belongs to its owner, and only events of that stream are
 * published.
 */
export function createProjector({ backend }: Pick<Deps, 'backend'>) {
  return {
    /**
     * Called once for each message that ingestion retained, never for a duplicate. `text`: its whole payload, whether
     * stored inline or spilled.
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

/** Returns the site whose canonical stream this suffix names; null if there is none. */
function siteOfStream(suffix: string): string | null {
  const [, siteId = ''] = suffix.split('/');
  return siteId !== '' && suffix === siteStream(siteId) ? siteId : null;
}

/**
 * Returns the event name in a payload; null if there is none. A text longer than NAME_TEXT cannot be a name and is not
 * parsed.
 */
function nameIn(payload: JsonText): unknown {
  const name = memberOf(payload, 'name') ?? null;
  return name !== null && name.length <= NAME_TEXT ? fromJson(name) : null;
}
