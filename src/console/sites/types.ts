/** Defines the types that several files of the site pages use. Contains types only. */
import type { SitePageQuery } from '../../generated/console.ts';

export type SiteDetails = NonNullable<SitePageQuery['site']>;
