import type { Message } from '../history/message.ts';
import type { JsonText } from '../json.ts';
import type { Maybe } from '../maybe.ts';

/** The rule of projection that a retained message did not meet, in the order in which they are asked. */
export type ProjectionRefusal = 'stream' | 'owner' | 'name' | 'allowlist';

/** `refusedBy` is null where it was published, and where the message does not stand under `sites/` at all. */
export type Projection = { readonly published: boolean; readonly refusedBy: ProjectionRefusal | null };

/** Puts retained events of sites onto their bus. */
export interface Projector {
  /** Called once for each message that ingestion retained, never for a duplicate. `payload` is its whole text, wherever it lies. */
  project(message: Message, payload: JsonText | null): Maybe<Projection>;
}

const CANONICAL = /^sites\/[^/]+\/events$/;

/** Where there are no sites: nothing has an owner, so nothing is published. */
export const noSites: Projector = {
  project: ({ suffix }) => ({ published: false, refusedBy: refusalWithoutSite(suffix) }),
};

function refusalWithoutSite(suffix: string): ProjectionRefusal | null {
  if (suffix !== 'sites' && !suffix.startsWith('sites/')) return null;
  return CANONICAL.test(suffix) ? 'owner' : 'stream';
}
