/** Decides whether a retained message is published to the viewers of its site. */
import type { Message } from '../history/message.ts';
import { fromJson, isObjectText, memberOf, type JsonText } from '../json.ts';
import { isEventName } from './site-definition.ts';
import { siteStream, type Site, type SiteEvent } from './site.ts';

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

/** Returns the site whose canonical stream this suffix names; null if there is none. */
export function siteOfStream(suffix: string): string | null {
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
