/** Defines the types that several files of the client pages use. Contains types only. */
import type { ClientPageQuery } from '../../generated/console.ts';

export type ClientDetails = NonNullable<ClientPageQuery['connection']>;
