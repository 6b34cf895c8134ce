/** The types that the files of the user pages share. Types only. */
import type { UserPageQuery } from '../../generated/console.ts';

export type UserDetails = NonNullable<UserPageQuery['user']>;
