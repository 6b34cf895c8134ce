/** Decides whether an ingested message is published to the viewers of its site. */
import type { Message } from '../history/message.ts';
import { fromJson, isObjectText, memberOf, type JsonText } from '../json.ts';
import { isEventName } from './site-definition.ts';
import { siteStream, type Site, type SiteEvent } from './site.ts';

/** The first projection rule that a message does not meet, in the order in which the rules are checked. */
export type ProjectionRefusal = 'stream' | 'owner' | 'host' | 'name' | 'allowlist';

/**
 * The result of a projection. `refusedBy`: null if the message was published, if its stream does not begin with
 * `sites/`, or if the projection failed.
 */
export type Projection = { readonly published: boolean; readonly refusedBy: ProjectionRefusal | null };

/**
 * The most characters that an event name has as JSON text: 128 characters, each perhaps written as `\uXXXX`, and two
 * quotes.
 */
const NAME_TEXT = 128 * 6 + 2;

/** The input of the rules. The message belongs to the user whose token ingested it. */
export type ProjectionFacts = {
  readonly message: Pick<Message, 'userId' | 'clientId' | 'suffix' | 'kind'>;
  readonly payload: JsonText | null;
  readonly site: Site | null;
};

type ProjectionVerdict =
  | { readonly refusedBy: ProjectionRefusal }
  | { readonly refusedBy: null; readonly event: Pick<SiteEvent, 'name' | 'data'> };

/**
 * Checks the rules in the documented order, and stops at the first one that is not met. The documented rule that the
 * host matches the site's definition is checked as two: `owner` (the user) and `host` (the client). Pure.
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

/**
 * Returns the id of the site whose event stream has this suffix; null if the suffix is not that of a site's event
 * stream.
 */
export function siteOfStream(suffix: string): string | null {
  const [, siteId = ''] = suffix.split('/');
  return siteId !== '' && suffix === siteStream(siteId) ? siteId : null;
}

/**
 * Returns the event name in a payload; null if there is none. A text longer than NAME_TEXT is not parsed, because it
 * cannot be a name.
 */
function nameIn(payload: JsonText): unknown {
  const name = memberOf(payload, 'name') ?? null;
  return name !== null && name.length <= NAME_TEXT ? fromJson(name) : null;
}
