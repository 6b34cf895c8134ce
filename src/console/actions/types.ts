/** Defines the types that several files of the actions page use. Contains types only. */
import type { ActionSampleQuery } from '../../generated/console.ts';

export type AdvertisedSample = ActionSampleQuery['actions']['items'][number];
