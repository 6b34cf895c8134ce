/** Sites and their events. */
import type { JsonText } from '../json.ts';

/** The address of a site: its owner, and the id that the owner chose. */
export type SiteKey = { readonly userId: string; readonly siteId: string };

/** What a site allows its viewers besides listening. */
export type CapabilityProfile = { readonly actionInvocation: boolean; readonly sharing: boolean };

/** The only mode in which events are projected to viewers and actions can be invoked. */
export const COOPERATIVE = 'cooperative';

/**
 * A site as its owner defined it. Immutable: registering again makes a new object. Whether its host is connected is
 * derived when read.
 */
export type Site = SiteKey & {
  /**
   * The mode of the site: COOPERATIVE, or another text that another program wrote into the store. In any other mode
   * nothing is invoked or published.
   */
  readonly mode: string;
  readonly title: string | null;
  /** The event names that may be published; empty: any valid name. */
  readonly eventNames: readonly string[];
  /** The actions that may be invoked; empty: none. */
  readonly actions: readonly string[];
  readonly capabilityProfile: CapabilityProfile;
  /** The client that hosts the site and runs its actions. */
  readonly clientId: string;
  /** When the site was registered, in epoch milliseconds. Registering it again without removing it keeps this time. */
  readonly registeredAt: number;
};

/** An event that is published to a site's viewers: a notification, not state. */
export type SiteEvent = {
  readonly name: string;
  /** The payload's member `data`, as its text was written. It may contain raw line breaks between tokens. */
  readonly data: JsonText | null;
  /** The id of the retained message; readers of history find it there. */
  readonly messageId: string;
  readonly publishedAt: number;
};

export function siteKeyText({ userId, siteId }: SiteKey): string {
  return `${userId}/${siteId}`;
}

export function siteStream(siteId: string): string {
  return `sites/${siteId}/events`;
}
