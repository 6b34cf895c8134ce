import type { Deps } from '../deps.ts';
import type { Message } from '../history/message.ts';
import { fromJson, isObjectText, memberOf, type JsonText } from '../json.ts';
import { andThen, type Maybe } from '../maybe.ts';
import { isEventName } from './definition.ts';
import { siteKeyText, siteStream, type Site, type SiteEvent } from './site.ts';

/** The rule of projection that a retained message did not meet, in the order in which they are asked. */
export type ProjectionRefusal = 'stream' | 'owner' | 'name' | 'allowlist';

/** `refusedBy` is null where it was published, and where the message does not stand under `sites/` at all. */
export type Projection = { readonly published: boolean; readonly refusedBy: ProjectionRefusal | null };

/** The longest JSON text of a name: 128 characters, each of which may be escaped, in quotes. */
const NAME_TEXT = 128 * 6 + 2;

/** Puts retained events of sites onto their bus. */
export interface Projector {
  /** Called once for each message that ingestion retained, never for a duplicate. `payload` is its whole text, wherever it lies. */
  project(message: Message, payload: JsonText | null): Maybe<Projection>;
}

/** What the four rules are asked about. The message's user is the one whose token ingested it. */
export type ProjectionFacts = {
  readonly message: Pick<Message, 'userId' | 'suffix' | 'kind'>;
  readonly payload: JsonText | null;
  readonly site: Site | null;
};

export type ProjectionVerdict =
  | { readonly refusedBy: ProjectionRefusal }
  | { readonly refusedBy: null; readonly event: Pick<SiteEvent, 'name' | 'data'> };

/** The four rules, in the order documented: each is only asked when those before it hold. Pure. */
export function projectSiteEvent({ message, payload, site }: ProjectionFacts): ProjectionVerdict {
  const siteId = siteOfStream(message.suffix);
  if (siteId === null || message.kind !== 'event') return { refusedBy: 'stream' };
  if (site?.siteId !== siteId || site.userId !== message.userId) return { refusedBy: 'owner' };
  const members = payload !== null && isObjectText(payload) ? payload : null;
  const name = members && nameIn(members);
  if (!isEventName(name)) return { refusedBy: 'name' };
  if (site.eventNames.length > 0 && !site.eventNames.includes(name)) return { refusedBy: 'allowlist' };
  return { refusedBy: null, event: { name, data: (members && memberOf(members, 'data')) ?? null } };
}

/** A site has one stream, of its owner; only there are events published. */
export function createProjector({ backend }: Pick<Deps, 'backend'>): Projector {
  return {
    project(message, text) {
      const { suffix, userId } = message;
      if (suffix !== 'sites' && !suffix.startsWith('sites/')) return { published: false, refusedBy: null };
      const siteId = siteOfStream(suffix);
      const found = siteId === null ? [] : backend.sites.get([{ userId, siteId }]);
      return andThen(found, ([site = null]) => {
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

/** The site whose canonical stream this suffix is; null: of none. */
function siteOfStream(suffix: string): string | null {
  const [, siteId = ''] = suffix.split('/');
  return siteId !== '' && suffix === siteStream(siteId) ? siteId : null;
}

/** A longer text is no name; nothing is built of it. */
function nameIn(payload: JsonText): unknown {
  const name = memberOf(payload, 'name') ?? null;
  return name !== null && name.length <= NAME_TEXT ? fromJson(name) : null;
}
