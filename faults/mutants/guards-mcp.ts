/**
 * Lists mutants of what keeps an agent's call from running twice, or from reaching what it must not see: copies of the
 * sources that each lack one guard. `npm run mutants` shows that tests notice each missing guard.
 */
import type { GuardMutant } from './mutant.ts';

const REPEATS = { file: 'core/calls/repeats.ts', judge: { test: 'test/core/repeats.test.ts' } } as const;
const WAITING = { test: 'test/mcp/waiting.test.ts' } as const;
const TOOLS = { file: 'mcp/tools.ts', judge: { test: 'test/mcp/tools.test.ts' } } as const;
const ARGUMENTS = { test: 'test/mcp/arguments.test.ts' } as const;
const ACCESS = { test: 'test/mcp/access-with-relay.test.ts' } as const;

/** The guard mutants of the bridge for agents. */
export const MCP_GUARDS: readonly GuardMutant[] = [
  {
    ...REPEATS,
    name: 'twin-of-live-runs',
    says: 'an identical call runs beside the one that has not ended',
    find: 'if (command && !isTerminal(command)) return attached;',
    replace: 'if (command && !isTerminal(command)) return again;',
  },
  {
    ...REPEATS,
    name: 'twin-of-undelivered-runs',
    says: 'an identical call runs although the earlier answer was lost',
    find: 'const isDelivered = command?.answeredAt !== undefined;',
    replace: 'const isDelivered = true;',
  },
  {
    ...REPEATS,
    name: 'unknown-repeats',
    says: 'an identical call runs after an unknown outcome',
    find: "if (outcome === 'outcome_unknown') return",
    replace: "if (outcome === 'outcome_unknown') return 1 > 0 ? again :",
  },
  {
    ...REPEATS,
    name: 'params-compared-as-text',
    says: 'the same params in another order are another call',
    find: ': canonicalText(params);',
    replace: ': params;',
  },
  {
    ...REPEATS,
    name: 'requesters-alike',
    says: 'the calls of two clients or contexts are taken for repeats of each other',
    find: 'JSON.stringify([subject, action, clientId, contextId])',
    replace: 'JSON.stringify([subject, action])',
  },
  {
    name: 'reset-is-delivery',
    says: 'an answer counts as delivered although its connection was reset',
    file: 'mcp/handler.ts',
    find: "socket.once('error', forget);",
    replace: '',
    judge: WAITING,
  },
  {
    name: 'delivered-at-once',
    says: 'an answer counts as delivered before anything shows that it arrived',
    file: 'mcp/handler.ts',
    find: 'this.#core.clock.after(AGENT_ARRIVED_MS, arrived)',
    replace: 'this.#core.clock.after(0, arrived)',
    judge: WAITING,
  },
  {
    name: 'hang-up-cancels-awaited',
    says: 'a call whose agent hung up is cancelled although an identical one waits for it',
    file: 'mcp/calls.ts',
    find: 'if (waits.length === 0) await',
    replace: 'await',
    judge: WAITING,
  },
  {
    name: 'wait-without-end',
    says: 'a call waits longer than hosts do',
    file: 'mcp/calls.ts',
    find: 'this.#cancels = [clock.after(withinMs, this.#expire)];',
    replace: 'this.#cancels = [clock.after(withinMs * 10, this.#expire)];',
    judge: WAITING,
  },
  {
    ...TOOLS,
    name: 'text-forges-lines',
    says: 'a client can write a line that looks like one of another client',
    find: ".replaceAll(/\\s+/g, ' ')",
    replace: '',
  },
  {
    ...TOOLS,
    name: 'remote-references-passed-on',
    says: 'a schema that refers to another address is passed on to hosts',
    find: ' || refersOutside(schema))',
    replace: ')',
  },
  {
    ...TOOLS,
    name: 'tools-of-denied-clients',
    says: 'tools show texts of clients that the requester may not call',
    find: '[...types].some((type) => allowed(name, type)),',
    replace: '[...types].some((type) => allowed(name, type) || name !== null),',
  },
  {
    name: 'actions-of-token-ignored',
    says: 'a token that is limited to some actions may invoke any',
    file: 'core/auth/principal.ts',
    find: 'return caller.actions.some(',
    replace: 'return !caller.actions || [...caller.actions, "*"].some(',
    judge: ACCESS,
  },
  {
    name: 'results-of-other-actions-read',
    says: 'a token that is limited to some actions may read the results of others',
    file: 'mcp/builtin-tools.ts',
    find: '.mayInvoke(requester, { userId: key.userId, clientType, action })) return null;',
    replace: '.mayInvoke(requester, { userId: key.userId, clientType, action })) void 0;',
    judge: ACCESS,
  },
  {
    name: 'ids-of-callers-noted',
    says: 'an answer is noted in the record of a command whose id its caller chose',
    file: 'mcp/handler.ts',
    find: 'told.filter(({ commandId }) => commandId.startsWith(REPEATABLE_PREFIX))',
    replace: 'told',
    judge: WAITING,
  },
  {
    name: 'keys-with-reserved-prefix',
    says: 'an idempotency key may be the id of a call that the relay recognises by itself',
    file: 'mcp/server.ts',
    find: 'return key.startsWith(REPEATABLE_PREFIX) ?',
    replace: "return key === '' ?",
    judge: WAITING,
  },
  {
    ...REPEATS,
    name: 'reserved-ids-from-elsewhere',
    says: 'callers that are no agents may choose the id of a call of an agent',
    file: 'core/calls/call.ts',
    find: " && callerLabel?.kind !== 'mcp'",
    replace: " && callerLabel?.kind !== 'mcp' && commandId === ''",
  },
  {
    ...REPEATS,
    name: 'mark-of-harmless-attaches',
    says: 'a call that does no harm gets an answer without the result',
    find: 'if (command === null && harmless) return again;',
    replace: '',
  },
  {
    name: 'client-of-many-guessed',
    says: 'a client is chosen although one that was not searched may offer the action too',
    file: 'mcp/calls.ts',
    find: 'others.length === 0 && !more)',
    replace: 'others.length === 0)',
    judge: { test: 'test/mcp/many-clients.test.ts' },
  },
  {
    name: 'unavailable-store-ran-nothing',
    says: 'a call whose admission the store did not answer is said to have run nothing',
    file: 'mcp/results.ts',
    find: "(code === 'internal' || code === 'store_unavailable')",
    replace: "code === 'internal'",
    judge: { test: 'test/mcp/failures.test.ts' },
  },
  {
    name: 'unknown-arguments-dropped',
    says: 'a built-in tool drops arguments that it does not take',
    file: 'mcp/builtin-tools.ts',
    find: 'if (unknown.length > 0) return refusedArguments(tool, unknown);',
    replace: '',
    judge: ARGUMENTS,
  },
  {
    ...TOOLS,
    name: 'arguments-named-alike',
    says: 'a text names an argument that the tool has under another name',
    find: 'const name = names[argument];',
    replace: 'const name: string | null = argument;',
    judge: ARGUMENTS,
  },
];
