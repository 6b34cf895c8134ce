/** The types that the files of this folder share. Types only. */
import type { ActionSampleQuery } from '../../generated/console.ts';

export type AdvertisedSample = ActionSampleQuery['actions']['items'][number];
