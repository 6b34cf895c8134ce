/** Defines a row in the access table of GraphQL fields: a call, and the answer that each requester must get. */

/**
 * The expected answer. `shows`: it contains the owner's rows. `empty`: it contains none of them. `null`: the field is
 * null. `count <n>`: it has this number of rows. Any other text is the code of an error, or `refused: <code>` for a
 * typed refusal.
 */
export type Verdict = string;

/**
 * A call of a field, who may make it, and the expected answers. `admin`: only administrators. `owned`: the call names
 * an owner, and other users get the answer for absent rows. `mine`: the call names no user, and each user sees their
 * own rows. `session`: the call names a session, which its owner and the holders of its grants may use.
 */
export type FieldAccess = {
  readonly rule: 'admin' | 'owned' | 'mine' | 'session';
  readonly call: string;
  /** The answer for the owner, or for `admin` the answer for an administrator. */
  readonly found: Verdict;
  /** The scope that a user needs; by default `invoke`. */
  readonly scope?: 'host';
  /** The answer for another user. For `owned` and `session`, also the answer for absent rows. */
  readonly other?: Verdict;
  /** The answer for an administrator, if it differs from the owner's. */
  readonly admin?: Verdict;
  /** The answer for an administrator about absent rows, if it differs from `other`. */
  readonly absent?: Verdict;
  /** The answer for the holder of a grant, if it differs from the owner's. */
  readonly viewer?: Verdict;
  /** Whether the requester gets the same answer for an absent row of their own as for a row of another user. */
  readonly alikeAtHome?: true;
  /** Whether the call would remove what later rows need. If so, only requesters without permission send it. */
  readonly harmful?: true;
};
