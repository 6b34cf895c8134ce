/** The types that the files of the call pages share. Types only. */
import type { CallPageQuery } from '../../generated/console.ts';

export type CallDetails = NonNullable<CallPageQuery['command']>;
