/**
 * Lists mutants of the calls that name a context: copies of the sources that each leave out one check of that context.
 */
import type { GuardMutant } from './mutant.ts';

/** The guard mutants of calls that name a context. */
export const PLACES_GUARDS: readonly GuardMutant[] = [
  {
    name: 'context-unchecked',
    says: 'a call is admitted for a context that the client does not report',
    file: 'core/commands/rules.ts',
    find: "return seen.kind === 'reported' && seen.instanceId === this.#instanceFor(question, client) ? null : CONTEXT_GONE;",
    replace: 'return seen ? null : CONTEXT_GONE;',
    judge: { test: 'test/core/places.test.ts' },
  },
  {
    name: 'context-unchecked-at-dispatch',
    says: 'a command is written to the client after its context has left',
    file: 'core/commands/rules.ts',
    find: "return this.tx.context(command, contextId).kind === 'gone' ? 'context_gone' : null;",
    replace: 'return null;',
    judge: { test: 'test/core/places.test.ts' },
  },
  {
    name: 'context-of-another-instance',
    says: 'a command for a context of one instance is queued for the next one',
    file: 'core/commands/rules.ts',
    find: 'if (contextId !== undefined && expectedInstanceId !== instanceId) {',
    replace: 'if (false) {',
    judge: { test: 'test/core/places.test.ts' },
  },
  {
    name: 'second-life',
    says: 'a context that left and is reported again counts as the earlier one',
    file: 'backends/memory/contexts.ts',
    find: 'instance.contexts.get(contextId) !== undefined && !instance.left?.has(contextId);',
    replace: 'instance.contexts.get(contextId) !== undefined;',
    judge: { test: 'test/core/places.test.ts' },
  },
  {
    name: 'context-uncompared',
    says: 'over Redis a call is admitted, or written, although its context has left since it was read',
    file: 'backends/redis/commands/transaction.ts',
    find: 'const { instanceId } = reporter;',
    replace: "const { instanceId } = reporter;\n    if (instanceId) return { kind: 'reported', instanceId };",
    judge: { test: 'test/backends/redis-contexts.test.ts' },
  },
  {
    name: 'places-unknown',
    says: 'a command that names a context is written to a client that knows no places',
    file: 'core/commands/rules.ts',
    find: "if (places !== true) return 'context_unsupported';",
    replace: '',
    judge: { test: 'test/core/places.test.ts' },
  },
  {
    name: 'context-not-compared',
    says: 'the same id with another context counts as the same call',
    file: 'core/calls/call.ts',
    find: 'const place = contextId === null ? [] : [contextId];',
    replace: 'const place: string[] = [];',
    judge: { test: 'test/core/places.test.ts' },
  },
  {
    name: 'context-unchecked-by-client',
    says: 'a client runs a command although its context has gone since it arrived',
    file: 'clients/runtime/commands.ts',
    find: 'if (gone) return gone;',
    replace: '',
    judge: { test: 'test/clients/runtime-commands.test.ts' },
  },
  {
    name: 'reserved-id',
    says: 'any caller may choose an id of a bridge',
    file: 'core/calls/call.ts',
    find: "return commandId?.startsWith(LABEL_IDS.mcp) === true && callerLabel?.kind !== 'mcp';",
    replace: 'return false;',
    judge: { test: 'test/core/places.test.ts' },
  },
];
