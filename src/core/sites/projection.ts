import type { Deps } from '../deps.ts';
import type { MessageKind } from '../history/message.ts';
import { toJson, type JsonText, type JsonValue } from '../json.ts';
import { andThen, type Maybe } from '../maybe.ts';
import { isEventName } from './definition.ts';
import { siteKeyText, siteStream, type Site, type SiteEvent } from './site.ts';

/** The rule that keeps a retained message from a site's viewers. */
export type ProjectionRule = 'stream' | 'owner' | 'name' | 'allowlist';

export type ProjectionVerdict =
  | { readonly refusedBy: ProjectionRule }
  | { readonly refusedBy: null; readonly event: Pick<SiteEvent, 'name' | 'data'> };

/** What the four rules are asked about. `host` is the user whose token ingested the message. */
export type ProjectionFacts = {
  readonly message: { readonly userId: string; readonly suffix: string; readonly kind: MessageKind };
  readonly payload: JsonValue;
  readonly host: string;
  readonly site: Site | null;
};

/** The four rules, in the order documented: each is only asked when those before it hold. Pure. */
export function projectSiteEvent({ message, payload, host, site }: ProjectionFacts): ProjectionVerdict {
  const siteId = siteOfStream(message.suffix);
  if (siteId === null || message.kind !== 'event') return { refusedBy: 'stream' };
  const owned = site !== null && site.siteId === siteId && site.userId === host && message.userId === host;
  if (!owned) return { refusedBy: 'owner' };
  const { name, data } = isRecord(payload) ? payload : {};
  if (!isEventName(name)) return { refusedBy: 'name' };
  if (site.eventNames.length > 0 && !site.eventNames.includes(name)) return { refusedBy: 'allowlist' };
  return { refusedBy: null, event: { name, data: toJson(data) } };
}

/** The site whose canonical stream this suffix is; null: of none. */
export function siteOfStream(suffix: string): string | null {
  const [first, siteId, last, ...more] = suffix.split('/');
  return first === 'sites' && siteId && siteStream(siteId) === suffix && last && more.length === 0 ? siteId : null;
}

/** A message that was retained now, for the first time. */
export type Projectable = ProjectionFacts['message'] & {
  readonly messageId: string;
  readonly at: number;
  /** Whole, whatever history made of it. */
  readonly payload: JsonText | null;
};

/** From what was retained to a site's viewers. `refusedBy` null and not published: the stream is none below `sites/`. */
export interface Projector {
  project(
    message: Projectable,
    host: string,
  ): Maybe<{ readonly published: boolean; readonly refusedBy: ProjectionRule | null }>;
}

export function createProjector({ backend }: Pick<Deps, 'backend'>): Projector {
  return {
    project({ payload: text, ...message }, host) {
      const siteId = siteOfStream(message.suffix);
      if (!message.suffix.startsWith('sites/')) return { published: false, refusedBy: null };
      const payload: JsonValue = text === null ? null : JSON.parse(text);
      const sites = siteId === null ? [null] : backend.sites.get([{ userId: host, siteId }]);
      return andThen(sites, ([site = null]) => {
        const verdict = projectSiteEvent({ message, payload, host, site });
        if (verdict.refusedBy !== null || !site) return { published: false, refusedBy: verdict.refusedBy };
        const event = { ...verdict.event, messageId: message.messageId, publishedAt: message.at };
        backend.bus.publish(`site:${siteKeyText(site)}`, event);
        return { published: true, refusedBy: null };
      });
    },
  };
}

function isRecord(value: JsonValue): value is { readonly [key: string]: JsonValue } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
