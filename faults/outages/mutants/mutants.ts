/** Joins the lists of mutants that fault runs must catch. Each mutant breaks one rule of the relay. */
import { LISTED_MUTANTS } from './listed.ts';
import type { Mistake, Mutant } from './plant.ts';

// Mutants that fault runs must catch with one relay in direct mode.

/** The mutants of the memory backend and of code that both backends use. */
const DIRECT_MUTANTS: readonly Mistake[] = [
  {
    name: 'leak',
    says: 'an end does not release its reservation',
    file: 'backends/memory/ledger.ts',
    find: 'scope.holders.noteDeleted();',
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
    file: 'backends/memory/commands.ts',
    find: 'reply: { rpcId, command, result: entry.result },',
    replace:
      'reply: { rpcId, command, result: [Reflect.get(this, "last") ?? entry.result, Reflect.set(this, "last", entry.result)][0] as never },',
    plan: 'F0',
    caughtBy: ['I9'],
  },
  {
    name: 'wide-window',
    says: 'the number of commands in flight on a link has no bound',
    file: 'core/commands/link-queue.ts',
    find: 'inFlight >= IN_FLIGHT ||',
    replace: '',
    plan: 'window',
    caughtBy: ['I10'],
  },
  {
    name: 'false-proof',
    says: 'a command that was written is reported as expired',
    file: 'core/commands/command.ts',
    find: "{ outcome: 'outcome_unknown', execution: 'may_have_run' }",
    replace: "{ outcome: 'outcome_unknown', execution: 'not_written' }",
    plan: 'F13',
    caughtBy: ['I8'],
  },
  {
    name: 'run-again',
    says: 'commands that another instance got are sent to the new one too',
    file: 'core/commands/rules.ts',
    find: 'orphaned.push(entry.command);',
    replace: "{ this.#move(entry, { stage: 'queued' }); this.tx.offer(entry, reported.nodeId); }",
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

// Mutants that fault runs must catch with three relays over one Redis.

/** The mutants of the Redis backend and of code that both backends use. */
const SHARED_MUTANTS: readonly Mistake[] = [
  {
    name: 'no-mark',
    says: 'a command is written to the socket without a recorded dispatch',
    file: 'core/commands/command.ts',
    find: `    dispatchedAt: nextTime(before, now),
`,
    replace: '',
    plan: 'F0',
    caughtBy: ['I8'],
  },
  {
    name: 'leak',
    says: 'an end does not release its reservation',
    file: 'backends/redis/commands/transaction.ts',
    find: "this.write(['ZREM', this.call.key('reserved', sh)], [[userId, clientId, commandId].join(NUL)]);",
    replace: '',
    plan: 'F0',
    caughtBy: ['I6'],
  },
  {
    name: 'queued-for-ever',
    says: 'the dispatch mark does not give back the bytes of the params',
    file: 'backends/redis/commands/transaction.ts',
    find: 'this.call.share(this.act, share, -entry.queuedBytes);',
    replace: '',
    plan: 'F0',
    caughtBy: ['counters'],
  },
  {
    name: 'cursor-from-now',
    says: 'a mailbox is read from new entries on, not from the entries that are left',
    file: 'backends/redis/nodes-mailbox.ts',
    find: "'STREAMS', key, cursor)",
    replace: "'STREAMS', key, '$')",
    plan: 'F0',
    caughtBy: ['I1', 'I4'],
  },
  {
    name: 'waiter-by-command',
    says: 'waits are stored by command, so that the node of the second replaces that of the first',
    file: 'backends/redis/commands/transaction.ts',
    find: '[...waits, own]',
    replace: '[own]',
    plan: 'F12',
    caughtBy: ['I4'],
  },
  {
    name: 'swapped-result',
    says: 'a waiter gets the result of another command',
    file: 'backends/redis/commands/transaction.ts',
    find: "else if (result !== null) fields.push('result', result);",
    replace: `else if (result !== null) {
        const last: string = Reflect.get(globalThis, 'lastResult') ?? result;
        Reflect.set(globalThis, 'lastResult', last);
        fields.push('result', last);
      }`,
    plan: 'F0',
    caughtBy: ['I9'],
  },
  {
    name: 'false-proof',
    says: 'a command that was written is reported as not written',
    file: 'core/commands/command.ts',
    find: "{ outcome: 'outcome_unknown', execution: 'may_have_run' }",
    replace: "{ outcome: 'outcome_unknown', execution: 'not_written' }",
    plan: 'F13',
    caughtBy: ['I8'],
  },
  {
    name: 'run-again',
    says: 'commands that another instance got are sent to the new one too',
    file: 'core/commands/rules.ts',
    find: 'orphaned.push(entry.command);',
    replace: 'this.#queue(entry, reported);',
    plan: 'F13',
    caughtBy: ['I5'],
  },
  {
    name: 'two-ends',
    says: 'the end that a client reports is retained twice',
    file: 'core/commands/rules.ts',
    find: 'const recorded: EndOfRecord = {',
    replace: `this.tx.retain(entry, { id: \`\${before.commandId}:end\`, kind: ROW_KIND[end.kind], instanceId, kept, error });
    const recorded: EndOfRecord = {`,
    plan: 'F0',
    caughtBy: ['I3'],
  },
  {
    name: 'admit-anew',
    says: 'a known id is admitted again',
    file: 'core/commands/rules.ts',
    find: 'if (known) return known.entry ? this.#attachTo(known.entry, request) : known.answer;',
    replace: '',
    plan: 'F12',
    caughtBy: ['I3', 'I4', 'I5', 'I6', 'I7', 'I8'],
  },
  {
    name: 'for-ever',
    says: 'the records and results of commands have no expiry',
    file: 'backends/redis/commands/transaction-writes.ts',
    find: "this.call.once(['PEXPIRE', of.key, String(of.over - this.now + of.grace)]);",
    replace: '',
    plan: 'F0',
    caughtBy: ['I11'],
  },
  {
    name: 'wide-window',
    says: 'the number of commands in flight on a link has no bound',
    file: 'core/commands/link-queue.ts',
    find: 'inFlight >= IN_FLIGHT ||',
    replace: '',
    plan: 'window',
    caughtBy: ['I10'],
  },
];

/** The mutants that fault runs must catch with relays that own partitions. */
const OWNED_MUTANTS: readonly Mistake[] = [
  {
    name: 'lease-renewed-late',
    says: 'a lease is renewed after it has ended',
    file: 'backends/owned/owner.ts',
    find: 'clock.every(leaseMs / BEATS,',
    replace: 'clock.every(1.2 * leaseMs,',
    plan: 'F0',
    caughtBy: ['unfenced'],
  },
  {
    name: 'takeover-in-one-turn',
    says: 'a takeover that reads something keeps the event loop for longer than a lease',
    file: 'backends/owned/partition.ts',
    find: 'const ms = Math.round(clock.monotonic() - began);',
    replace:
      'const busyUntil = clock.monotonic() + (fence.number > 0 ? 4_000 : 0); while (clock.monotonic() < busyUntil); const ms = Math.round(clock.monotonic() - began);',
    plan: 'F1',
    caughtBy: ['unfenced'],
  },
  {
    name: 'pause-unasked-at-dispatch',
    says: 'a command that waited is dispatched although a pause covers it',
    file: 'core/commands/rules.ts',
    find: 'if (this.tx.pauseOf(before)) return isRepeated ? PAUSED : SKIP;',
    replace: '',
    plan: 'F37',
    caughtBy: ['paused'],
  },
  {
    name: 'pause-of-one-owner',
    says: 'only one owner has a pause of all users',
    file: 'core/store-parts.ts',
    find: 'const parts = pauses.parts(userId);',
    replace: 'const parts = pauses.parts(userId).slice(0, 1);',
    plan: 'F37',
    caughtBy: ['paused'],
  },
  {
    name: 'pause-asks-no-relay',
    says: 'a pause is answered though other relays may write still what was allowed before',
    file: 'core/commands/permits.ts',
    find: 'const { others } = found ?? (await otherNodes(deps));',
    replace: 'const { others } = { others: [] as string[] };',
    plan: 'F37',
    caughtBy: ['paused'],
  },
  {
    name: 'pause-unrecorded',
    says: 'the next owner of a partition does not know its pauses',
    file: 'backends/journal/recording.ts',
    find: "if (kept === 'kept') records.add('pause', pause);",
    replace: '',
    plan: 'F37',
    caughtBy: ['paused'],
  },
  {
    name: 'revocation-confirmed-unread',
    says: 'a node confirms a revocation that it does not apply',
    file: 'core/revocations/revocations.ts',
    find: 'JSON.stringify(await takeWhole(JSON.parse(text) as Revocation))',
    replace: `text && '{"links":0,"sockets":0}'`,
    plan: 'F37',
    caughtBy: ['revoked'],
  },
];

export const MUTANTS: readonly Mutant[] = [
  ...DIRECT_MUTANTS.map((mutant) => ({ ...mutant, mode: 'direct' as const })),
  ...[...SHARED_MUTANTS, ...LISTED_MUTANTS].map((mutant) => ({ ...mutant, mode: 'shared' as const })),
  ...OWNED_MUTANTS.map((mutant) => ({ ...mutant, mode: 'owned' as const })),
];
