/** The policy of a running node. A new policy file replaces it as a whole, and a digest identifies it. */
import { fail } from '../errors.ts';
import type { Crypto, Log } from '../ports.ts';
import { compilePolicy, type PolicyFile } from './policy-file.ts';
import type { Policy, PolicyReport } from './policy.ts';

/** The policy file of a node that has none. With it, the node decides as the default policy does. */
const NO_FILE: PolicyFile = { rules: [], scopes: [], userCapacity: null };

/**
 * The length of a digest, in characters. People recognise a policy by its digest; the digest is too short to prove
 * anything.
 */
const DIGEST_CHARS = 12;

/**
 * What an operator must do before a policy file with other scopes can be used. `restart`: restart the only relay.
 * `restarts`: restart all relays, one after the other. `namespace`: use another namespace, because the store is divided
 * by scopes.
 */
export type ScopeMove = 'restart' | 'restarts' | 'namespace';

const HOW_TO_MOVE: Readonly<Record<ScopeMove, string>> = {
  restart: 'Restart the relay with this file.',
  restarts: 'Restart the relays with this file, one after the other.',
  namespace:
    'The data in Redis is divided by these scopes, so a restart does not help: start relays with this file and another NAMESPACE, and hand over to them.',
};

type Sha256 = Crypto['sha256'];

type LivePolicyDeps = { readonly sha256: Sha256; readonly log: Log; readonly scopeMove: ScopeMove };

/** Returns the digest of a policy file. No file (null) and a file without restrictions have the same digest. */
export function policyDigest(file: PolicyFile | null, sha256: Sha256): string {
  const { rules, scopes, rates = [], userCapacity } = file ?? NO_FILE;
  return sha256(JSON.stringify([rules, scopes, rates, userCapacity])).slice(0, DIGEST_CHARS);
}

/** Returns the digest of `scopeMapOf`. A running relay accepts a new file only if this digest is unchanged. */
export function scopeMapDigest(file: PolicyFile | null, sha256: Sha256): string {
  return sha256(scopeMapOf(file)).slice(0, DIGEST_CHARS);
}

/**
 * Returns, as text, what determines the scope of each user: the ids and members of the scopes, in order. Two policies
 * with the same text put each user into the same scope, even if the capacities of their scopes differ.
 */
export function scopeMapOf(file: PolicyFile | null): string {
  return JSON.stringify((file ?? NO_FILE).scopes.map(({ id, members }) => ({ id, members })));
}

/** Replaces the policy of a relay while it runs. */
export interface PolicyControl {
  /**
   * Replaces the policy file, from the next decision on; null: the relay has no policy file. If any user would move to
   * another admission scope, throws `invalid_argument` and keeps the present policy, because live commands are counted
   * in the scope of their admission. The error message says what an operator can do instead.
   */
  replace(file: PolicyFile | null): void;
  /** Keeps the present policy, and reports to operators why the new file is not used. */
  refuse(reason: string): void;
}

/** The control of a policy that the surrounding program passed. No file can replace it. */
export const FIXED_POLICY: PolicyControl = {
  replace: () => fail('invalid_argument', 'The relay was opened with a policy of the program.'),
  refuse() {},
};

/** A policy that decides by the current policy file. All decisions in one turn of the event loop use the same file. */
export class LivePolicy implements Policy, PolicyControl {
  readonly #sha256: Sha256;
  readonly #log: Log;
  readonly #scopeMove: ScopeMove;
  #file: PolicyFile | null;
  #compiled: Policy;
  #report: PolicyReport;

  constructor(file: PolicyFile | null, { sha256, log, scopeMove }: LivePolicyDeps) {
    this.#scopeMove = scopeMove;
    this.#sha256 = sha256;
    this.#log = log;
    this.#file = file;
    this.#compiled = compilePolicy(file ?? NO_FILE);
    this.#report = { digest: policyDigest(file, sha256), fault: null };
  }

  readonly decide: Policy['decide'] = (requester, target) => this.#compiled.decide(requester, target);
  readonly scopeOf: Policy['scopeOf'] = (userId) => this.#compiled.scopeOf(userId);
  readonly rateOf: NonNullable<Policy['rateOf']> = (requester, target) =>
    this.#compiled.rateOf?.(requester, target) ?? null;
  readonly report = (): PolicyReport => this.#report;

  replace(file: PolicyFile | null): void {
    if (scopeMapOf(file) !== scopeMapOf(this.#file)) {
      const how = HOW_TO_MOVE[this.#scopeMove];
      fail('invalid_argument', `scopes: other ids or members would move users whose calls run to other scopes. ${how}`);
    }
    const digest = policyDigest(file, this.#sha256);
    const isNew = digest !== this.#report.digest || this.#report.fault !== null;
    if (digest !== this.#report.digest) this.#compiled = compilePolicy(file ?? NO_FILE);
    this.#file = file;
    this.#report = { digest, fault: null };
    if (isNew) this.#log.info({ digest }, 'the policy was read again');
  }

  refuse(reason: string): void {
    if (this.#report.fault === reason) return;
    const { digest } = this.#report;
    this.#report = { digest, fault: reason };
    this.#log.error({ digest, fault: reason }, 'the changed policy is not used; the one before stays in use');
  }
}
