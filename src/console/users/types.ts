/** Defines the types that several files of the user pages use. Contains types only. */
import type { UserPageQuery } from '../../generated/console.ts';

export type UserDetails = NonNullable<UserPageQuery['user']>;
