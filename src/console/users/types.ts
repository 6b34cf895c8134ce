/** The types that the files of this folder share. Types only. */
import type { UserPageQuery } from '../../generated/console.ts';

export type UserDetails = NonNullable<UserPageQuery['user']>;
