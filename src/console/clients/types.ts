/** The types that the files of the client pages share. Types only. */
import type { ClientPageQuery } from '../../generated/console.ts';

export type ClientDetails = NonNullable<ClientPageQuery['connection']>;
