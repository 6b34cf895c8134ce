/**
 * Defines the types of what the invoke drawer knows of a call: what it starts with, and the target client with its
 * actions.
 */
import type { InvokeTargetQuery } from '../../generated/console.ts';

export type InvokeClient = NonNullable<InvokeTargetQuery['connection']>;
export type TargetAction = InvokeClient['actions']['items'][number];

/** What the drawer starts with: the parts of the call that are already chosen. */
export type InvokeStart = {
  readonly userId?: string;
  readonly clientId?: string;
  readonly action?: string;
};
