/** The types that the files of the site pages share. Types only. */
import type { SitePageQuery } from '../../generated/console.ts';

export type SiteDetails = NonNullable<SitePageQuery['site']>;
