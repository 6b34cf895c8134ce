/** The interface for reading the audit. Types only. */
import type { Requester } from '../auth/principal.ts';
import type { PageArgs } from '../cursor.ts';
import type { Page } from '../page.ts';
import type { AuditSubject, OperatorAction } from './row.ts';

/** An act of an administrator. `outcome`: what became of it; null until the relay has recorded that. */
export type AuditEvent = {
  readonly seq: number;
  readonly at: number;
  readonly who: string;
  readonly action: OperatorAction;
  readonly subject: AuditSubject;
  readonly reason: string | null;
  readonly node: string;
  readonly requestId: string | null;
  readonly outcome: string | null;
};

export type AuditQuery = {
  readonly userId?: string | null | undefined;
  readonly who?: string | null | undefined;
  readonly action?: OperatorAction | null | undefined;
  /** The bounds of the time of an act, both exclusive; epoch milliseconds. */
  readonly afterTime?: number | null | undefined;
  readonly beforeTime?: number | null | undefined;
};

/**
 * A part of the chain of audit rows, oldest first. `lines` holds the rows in the form in which they are stored. `head`
 * is the newest row of the chain.
 */
export type AuditChain = {
  readonly lines: readonly string[];
  /** The number of the last row of this part; null: there are no more rows. */
  readonly lastSeq: number | null;
};

export interface Audits {
  /**
   * Lists acts, newest first: all of them for an administrator, and for a user those that concern this user. Throws
   * `not_found` for another user.
   */
  events(requester: Requester, query: AuditQuery, page: PageArgs): Promise<Page<AuditEvent>>;
  /** Reads at most `first` rows (1 to 1000) whose numbers are above `afterSeq`. For administrators only. */
  chain(requester: Requester, afterSeq: number, first: number): Promise<AuditChain>;
}
