/** Defines the types that several files of the call pages use. Contains types only. */
import type { CallPageQuery } from '../../generated/console.ts';

export type CallDetails = NonNullable<CallPageQuery['command']>;
