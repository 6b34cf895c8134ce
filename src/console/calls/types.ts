/** The types that the files of this folder share. Types only. */
import type { CallPageQuery } from '../../generated/console.ts';

export type CallDetails = NonNullable<CallPageQuery['command']>;
