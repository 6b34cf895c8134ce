/** The types that the files of the actions page share. Types only. */
import type { ActionSampleQuery } from '../../generated/console.ts';

export type AdvertisedSample = ActionSampleQuery['actions']['items'][number];
