/**
 * `shows`: the owner's things are in the answer. `empty`: an answer without any of them. `null`: the field is null. `count <n>`: so many
 * counted. Anything else is the code of an error, or `refused: <code>` of a typed refusal.
 */
export type Verdict = string;

/**
 * `admin`: administrators alone. `owned`: names whose things are asked for; whoever may not know of them gets what is absent.
 * `mine`: names nobody, so that each user is shown its own. `session`: names a session, which its owner and the holders of its grants enter.
 */
export type FieldAccess = {
  readonly rule: 'admin' | 'owned' | 'mine' | 'session';
  readonly call: string;
  /** What its owner is told; of `admin`, what an administrator is told. */
  readonly found: Verdict;
  /** The scope that a user needs; `invoke` unless told. */
  readonly scope?: 'host';
  /** Of `owned` and `session`: for a user whose it is not, and where there is no such thing. Of `mine`: for another user. */
  readonly other?: Verdict;
  /** For an administrator, if that is not what its owner is told. */
  readonly admin?: Verdict;
  /** For an administrator, where there is no such thing, if that differs from `other`. */
  readonly absent?: Verdict;
  /** For the holder of a grant, if that is not what its owner is told. */
  readonly viewer?: Verdict;
  /** An absent thing of the asker's own user answers the same as a foreign one. */
  readonly alikeAtHome?: true;
  /** It would take away what later rows need: only those are asked who must not be able to. */
  readonly harmful?: true;
};
