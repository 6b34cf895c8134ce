/** The types of sites and of their events. */
import type { JsonText } from '../json.ts';

/** The key of a site: its owner, and the id that the owner chose. */
export type SiteKey = { readonly userId: string; readonly siteId: string };

/** What viewers of a site may do besides listening. */
export type CapabilityProfile = { readonly actionInvocation: boolean; readonly sharing: boolean };

/** The only mode in which events are published to viewers and actions can be invoked. */
export const COOPERATIVE = 'cooperative';

/**
 * A site as its owner defined it. Immutable: registering it again makes a new object. Whether its host is connected is
 * computed when it is read.
 */
export type Site = SiteKey & {
  /**
   * The mode of the site: COOPERATIVE, or another text if another program wrote it into the store. In another mode
   * nothing is invoked or published.
   */
  readonly mode: string;
  readonly title: string | null;
  /** The names of the events that may be published; empty: any valid name. */
  readonly eventNames: readonly string[];
  /** The actions that may be invoked; empty: none. */
  readonly actions: readonly string[];
  readonly capabilityProfile: CapabilityProfile;
  /** The client that hosts the site and runs its actions. */
  readonly clientId: string;
  /**
   * When the site was registered, in epoch milliseconds. Registering it again does not change this time, unless the
   * site was removed in between.
   */
  readonly registeredAt: number;
};

/** An event that is published to a site's viewers. It is a notification and carries no state. */
export type SiteEvent = {
  readonly name: string;
  /** The member `data` of the payload, in its original text. There may be raw line breaks between its tokens. */
  readonly data: JsonText | null;
  /** The id of the ingested message, under which it is found in history. */
  readonly messageId: string;
  readonly publishedAt: number;
};

export function siteKeyText({ userId, siteId }: SiteKey): string {
  return `${userId}/${siteId}`;
}

export function siteStream(siteId: string): string {
  return `sites/${siteId}/events`;
}
