/** What the drawer knows of a call: its start, and the client that it goes to with its actions. Types only. */
import type { InvokeTargetQuery } from '../../generated/console.ts';

export type InvokeClient = NonNullable<InvokeTargetQuery['connection']>;
export type TargetAction = InvokeClient['actions']['items'][number];

/** What is known of the call so far. */
export type InvokeStart = {
  readonly userId?: string;
  readonly clientId?: string;
  readonly action?: string;
};
