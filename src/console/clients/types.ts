/** The types that the files of this folder share. Types only. */
import type { ClientPageQuery } from '../../generated/console.ts';

export type ClientDetails = NonNullable<ClientPageQuery['connection']>;
