import type { JsonText } from '../json.ts';

/** The address of a site: its owner, and the owner's own name for it. */
export type SiteKey = { readonly userId: string; readonly siteId: string };

/** What a site lets its viewers do beside listening. */
export type CapabilityProfile = { readonly actionInvocation: boolean; readonly sharing: boolean };

/** The one mode in which events are projected to viewers and actions are invoked. */
export const COOPERATIVE = 'cooperative';

/** A site as its owner defined it. Immutable: registering again makes a new object. Whether its host is connected is derived. */
export type Site = SiteKey & {
  /** COOPERATIVE, or a word of whoever else writes to the store: nothing is then invoked or published. */
  readonly mode: string;
  readonly title: string | null;
  /** The event names that may be published; empty: any valid name. */
  readonly eventNames: readonly string[];
  /** The actions that may be invoked; empty: none. */
  readonly actions: readonly string[];
  readonly capabilityProfile: CapabilityProfile;
  /** The client that hosts it: where its actions run. */
  readonly clientId: string;
  /** When it was first registered, since it was last removed. */
  readonly registeredAt: number;
};

/** What is published to a site's viewers: a notification, not state. */
export type SiteEvent = {
  readonly name: string;
  /** Written anew by the projection, so without a raw line break. */
  readonly data: JsonText | null;
  /** The retained message: whoever may read history finds it there. */
  readonly messageId: string;
  readonly publishedAt: number;
};

export function siteKeyText({ userId, siteId }: SiteKey): string {
  return `${userId}/${siteId}`;
}

export function siteStream(siteId: string): string {
  return `sites/${siteId}/events`;
}
