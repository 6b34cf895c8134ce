/** Lists the mutants that fault runs must catch with one relay in direct mode. */
import type { Mistake } from './mutant.ts';

/** The mutants of the memory backend and of code that both backends use. */
export const DIRECT_MUTANTS: readonly Mistake[] = [
  {
    name: 'leak',
    says: 'an end does not release its reservation',
    file: 'backends/memory/ledger.ts',
    find: 'scope.holders.remove(entry.scopePlace);',
    replace: '',
    plan: 'F0',
    caughtBy: ['I6'],
  },
  {
    name: 'early-release',
    says: 'some ends do not remove what only live commands have',
    file: 'backends/memory/commands.ts',
    find: 'this.#ledger.end(entry, this.now);',
    replace: 'if (command.commandId.endsWith("7")) this.#ledger.end(entry, this.now);',
    plan: 'F0',
    caughtBy: ['I6'],
  },
  {
    name: 'waiter-by-command',
    says: 'waiters are stored by command, so that the second replaces the first',
    file: 'backends/memory/waiters.ts',
    find: 'entry.waiters = [...entry.waiters, row];',
    replace: 'entry.waiters = [row];',
    plan: 'F12',
    caughtBy: ['I4'],
  },
  {
    name: 'swapped-result',
    says: 'a waiter gets the result of the previous command',
    file: 'backends/memory/waiters.ts',
    find: 'reply: { rpcId, command, result: entry.result },',
    replace:
      'reply: { rpcId, command, result: [Reflect.get(this, "last") ?? entry.result, Reflect.set(this, "last", entry.result)][0] as never },',
    plan: 'F0',
    caughtBy: ['I9'],
  },
  {
    name: 'wide-window',
    says: 'the number of commands in flight on a link has no bound',
    file: 'core/commands/link-queues.ts',
    find: 'window.size >= IN_FLIGHT ||',
    replace: '',
    plan: 'window',
    caughtBy: ['I10'],
  },
  {
    name: 'false-proof',
    says: 'a command that was written is reported as expired',
    file: 'core/commands/rules.ts',
    find: "execution: unknown ? 'may_have_run' : 'not_written',",
    replace: "execution: 'not_written',",
    plan: 'F13',
    caughtBy: ['I8'],
  },
  {
    name: 'run-again',
    says: 'commands that another instance got are sent to the new one too',
    file: 'core/commands/rules.ts',
    find: 'else orphaned.push(entry.command);',
    replace: "else { this.#move(entry, { stage: 'queued' }); this.tx.offer(entry, reported.nodeId); }",
    plan: 'F13',
    caughtBy: ['I5', 'I9'],
  },
  {
    name: 'two-ends',
    says: 'the end that a client reports is retained twice',
    file: 'core/commands/rules.ts',
    find: 'const recorded: EndOfRecord = {',
    replace:
      'this.tx.retain(entry, { id: `${before.commandId}:end`, kind: ROW_KIND[end.kind], instanceId, kept, error });\n    const recorded: EndOfRecord = {',
    plan: 'F0',
    caughtBy: ['I3'],
  },
];
