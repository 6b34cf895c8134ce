/**
 * Says which kinds of callers may invoke actions on the clients of a user, as far as the policy and the scopes of
 * tokens decide it. The relay keeps no list of tokens, so a rule that depends on one token gives `unknown`.
 */
import type { CallRate, Policy } from '../auth/policy.ts';
import { readUserInSight, seenActions, seesAction } from '../auth/sight.ts';
import type { CallingPrincipal, Requester, Scope } from '../auth/principal.ts';
import type { CommandCaller } from '../commands/command.ts';
import type { ClientType } from '../connections/connection.ts';
import { invalid } from '../errors.ts';
import { name } from '../ids.ts';
import { PERMITTED_ACTIONS } from '../limits.ts';
import type { PreflightVerdict } from './call.ts';

/** Whether callers of this kind may invoke an action. `unknown`: only some of them may, or the relay cannot tell. */
export type CallPermission = {
  readonly kind: CommandCaller['kind'] | 'mcp';
  readonly verdict: PreflightVerdict;
  readonly message: string;
};
export type ActionPermissions = {
  readonly action: string;
  readonly userId: string;
  readonly callers: readonly CallPermission[];
};

/**
 * Returns for each action which kinds of callers may invoke it. Throws the errors of a listing of this user, and
 * `invalid_argument` if a name is invalid or there are too many names.
 */
export function permissions(
  policy: Policy,
  requester: Requester,
  query: { readonly userId: string; readonly actions: readonly string[] },
): readonly ActionPermissions[] {
  const userId = readUserInSight(requester, query.userId);
  const sight = seenActions(requester);
  if (query.actions.length > PERMITTED_ACTIONS) invalid('actions', `expected at most ${PERMITTED_ACTIONS} names`);
  return query.actions.map((given) => {
    const action = name('actions', given);
    const callers = callersOf(policy, userId, action);
    return { action, userId, callers: seesAction(sight, action) ? callers : callers.map(hidden) };
  });
}

/** Hides the verdict about an action that the requester's token does not name. */
const hidden = ({ kind }: CallPermission): CallPermission => ({
  kind,
  verdict: 'unknown',
  message: 'Not shown: the token is limited to other actions.',
});

const CLIENT_TYPES: readonly ClientType[] = ['browser', 'console', 'mobile', 'web'];
/**
 * The sets of further scopes that a token may have, besides the ones that a call needs. They matter because a policy
 * rule may name them.
 */
const OTHERS: readonly (readonly Scope[])[] = [[], ['connect'], ['host'], ['connect', 'host']];

const ADMIN: readonly CallingPrincipal[] = [{ kind: 'admin', name: '', expiresAt: null }];

function callersOf(policy: Policy, userId: string, action: string): readonly CallPermission[] {
  const ask = (kind: CallPermission['kind'], passed: string): CallPermission => {
    const question = { callers: callersOfKind(kind, userId), userId, action, passed, clientTypes: CLIENT_TYPES };
    const { verdict, message } = decide(policy, question);
    return { kind, verdict, message };
  };
  const grant = ask('grant', '');
  return [
    ask('admin', 'Any administrator.'),
    ask('user', 'Tokens of the user with the scope "invoke", unless they name other actions.'),
    ask('mcp', 'Tokens of the user with "invoke" or "mcp", unless they name other actions.'),
    grant.verdict === 'pass' ? { ...grant, verdict: 'unknown', message: OF_GRANT } : grant,
  ];
}

/** A call as the record of a command shows it: the caller's kind and name are known, but not its token. */
export type RecordedCall = {
  readonly kind: CallPermission['kind'];
  readonly userId: string;
  readonly action: string;
  /** Null if the client was not connected when the call was admitted. */
  readonly clientType: ClientType | null;
};

/**
 * Returns how a policy would decide a recorded call. `unknown`: the decision depends on further scopes of the token,
 * which records do not contain.
 */
export function decideRecorded(policy: Policy, { kind, userId, action, clientType }: RecordedCall) {
  const callers = callersOfKind(kind, userId);
  return decide(policy, { callers, userId, action, passed: '', clientTypes: [clientType] });
}

/**
 * Returns the rate rule that counts a recorded call; null if no rule does, or if the rule depends on further scopes of
 * the token.
 */
export function rateOfRecorded(policy: Policy, { kind, ...target }: RecordedCall): CallRate | null {
  const rates = callersOfKind(kind, target.userId).map((caller) => policy.rateOf?.(caller, target) ?? null);
  const [first = null] = rates;
  return rates.every((rate) => rate?.rule === first?.rule) ? first : null;
}

/** Returns one principal for each way in which a policy may treat a caller of this kind. */
function callersOfKind(kind: CallPermission['kind'], userId: string): readonly CallingPrincipal[] {
  if (kind === 'admin') return ADMIN;
  const needed: readonly Scope[] = kind === 'mcp' ? ['invoke', 'mcp'] : ['invoke'];
  const tokens = OTHERS.map((others): CallingPrincipal => ({
    kind: 'user',
    userId,
    scopes: new Set([...needed, ...others]),
    expiresAt: null,
  }));
  // A site's action is invoked on behalf of the session's owner, without further scopes.
  return kind === 'grant' ? tokens.slice(0, 1) : tokens;
}

const OF_GRANT = 'Only if a site of the user offers the action and the grant has it.';

/** `rules`: the rules that deny the call of at least one of the callers. */
type Decided = Omit<CallPermission, 'kind'> & { readonly rules: readonly string[] };

type Question = {
  readonly callers: readonly CallingPrincipal[];
  readonly userId: string;
  readonly action: string;
  readonly clientTypes: readonly (ClientType | null)[];
  /** The message if the policy allows every caller. */
  readonly passed: string;
};

/**
 * Asks the policy about each combination of caller and client type. The answers differ if a rule names scopes or client
 * types.
 */
function decide(policy: Policy, { callers, userId, action, passed, clientTypes }: Question): Decided {
  const decisions = callers.flatMap((caller) =>
    clientTypes.map((clientType) => policy.decide(caller, { userId, clientType, action })),
  );
  const rules = [...new Set(decisions.flatMap((decision) => (decision.allowed ? [] : [decision.rule])))];
  const named = `The policy ${rules.length === 1 ? 'rule' : 'rules'} ${rules.map((rule) => `"${rule}"`).join(', ')}`;
  if (rules.length === 0) return { verdict: 'pass', message: passed, rules };
  if (decisions.every(({ allowed }) => !allowed)) return { verdict: 'refuse', message: `${named} denies it.`, rules };
  const message = `${named} decides by the type of the client or by other scopes of the token.`;
  return { verdict: 'unknown', message, rules };
}
