import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A mistake in the relay's sources that a run must notice. */
export type Mutant = {
  readonly name: string;
  readonly says: string;
  readonly mode: 'direct' | 'shared';
  /** Below src. */
  readonly file: string;
  /** Stands in the file exactly once. */
  readonly find: string;
  readonly replace: string;
  /** The plan under which it shows. */
  readonly plan: string;
  /** Invariants, any of which catches it. */
  readonly caughtBy: readonly string[];
};

const DIRECT: readonly Omit<Mutant, 'mode'>[] = [
  {
    name: 'leak',
    says: 'an end leaves its reservation',
    file: 'backends/memory/ledger.ts',
    find: 'holders?.delete(holderOrder(command));',
    replace: '',
    plan: 'F0',
    caughtBy: ['I6'],
  },
  {
    name: 'early-release',
    says: 'no reservation is ever made, but the record is',
    file: 'backends/memory/commands-acts.ts',
    find: 'acts.ledger.end(entry);',
    replace: 'if (command.commandId.endsWith("7")) acts.ledger.end(entry);',
    plan: 'F0',
    caughtBy: ['I6'],
  },
  {
    name: 'waiter-by-command',
    says: 'waiters are kept by command, so that the second takes the place of the first',
    file: 'backends/memory/waiters.ts',
    find: 'rows.set(rpcId, row);',
    replace: 'rows.set(command.commandId, row);',
    plan: 'F12',
    caughtBy: ['I4'],
  },
  {
    name: 'swapped-result',
    says: 'a waiter gets the result of the command before',
    file: 'backends/memory/waiters.ts',
    find: 'reply: { rpcId, command: entry.command, result: entry.result },',
    replace:
      'reply: { rpcId, command: entry.command, result: [Reflect.get(this, "last") ?? entry.result, Reflect.set(this, "last", entry.result)][0] as never },',
    plan: 'F0',
    caughtBy: ['I9'],
  },
  {
    name: 'wide-window',
    says: 'a link is written to without a bound',
    file: 'core/delivery/dispatcher.ts',
    find: 'outlet.window.size >= IN_FLIGHT ||',
    replace: '',
    plan: 'slow',
    caughtBy: ['I10'],
  },
  {
    name: 'false-proof',
    says: 'a command that was written is told to have expired',
    file: 'backends/memory/commands-settle.ts',
    find: "execution: unknown ? 'may_have_run' : 'not_written',",
    replace: "execution: 'not_written',",
    plan: 'F13',
    caughtBy: ['I8'],
  },
  {
    name: 'run-again',
    says: 'what another instance was given is given to the new one too',
    file: 'backends/memory/commands-rebind.ts',
    find: 'else orphaned.push(entry.command);',
    replace:
      "else { move(entry, { stage: 'queued' }); client.running.delete(entry); client.waiting.add(entry); acts.mailboxes.post(told.nodeId, { kind: 'command', key: keyOf(entry.command) }); }",
    plan: 'F13',
    caughtBy: ['I5', 'I9'],
  },
  {
    name: 'two-ends',
    says: 'the end that a client reports is kept twice',
    file: 'backends/memory/commands-finish.ts',
    find: 'const command = conclude(',
    replace:
      'acts.keep(row(entry, { id: `${commandId}:end`, kind: ROW_KIND[end.kind], kept: end.kept }));\n  const command = conclude(',
    plan: 'F0',
    caughtBy: ['I3'],
  },
];

const SHARED: readonly Omit<Mutant, 'mode'>[] = [
  {
    name: 'no-mark',
    says: 'a socket is written to without the dispatch on record',
    file: 'backends/redis/lua/commands-dispatch.lua',
    find: 'dispatchedAt = text(now),',
    replace: '',
    plan: 'F0',
    caughtBy: ['I8'],
  },
  {
    name: 'leak',
    says: 'an end leaves its reservation',
    file: 'backends/redis/lua/lib-commands.lua',
    find: "call('ZREM', key('reserved', rec.sh), name)",
    replace: '',
    plan: 'F0',
    caughtBy: ['I6'],
  },
  {
    name: 'cursor-from-now',
    says: 'a mailbox is read from what comes, not from what is left',
    file: 'backends/redis/nodes-mailbox.ts',
    find: "'STREAMS', key, cursor)",
    replace: "'STREAMS', key, '$')",
    plan: 'F0',
    caughtBy: ['I1', 'I4'],
  },
  {
    name: 'no-epoch',
    says: 'the close of an old link unbinds the new one',
    file: 'backends/redis/lua/commands-rebind.lua',
    find: "if a[5] == 'down' and told ~= epoch then return false end",
    replace: '',
    plan: 'F7',
    caughtBy: ['I1', 'I4'],
  },
  {
    name: 'waiter-by-command',
    says: 'waiters are kept by command, so that the second takes the place of the first',
    file: 'backends/redis/lua/lib-waiters.lua',
    find: "call('HSET', rows, rpcId, cjson.encode(row))",
    replace: "call('DEL', rows) call('HSET', rows, rpcId, cjson.encode(row))",
    plan: 'F12',
    caughtBy: ['I4'],
  },
  {
    name: 'swapped-result',
    says: 'a waiter gets the result of another command',
    file: 'backends/redis/lua/lib-waiters.lua',
    find: "fields.result = call('GET', result)",
    replace:
      "local last = key('payload', 'last') call('SET', last, call('GET', result), 'NX', 'PX', 60000) fields.result = call('GET', last)",
    plan: 'F0',
    caughtBy: ['I9'],
  },
  {
    name: 'false-proof',
    says: 'a command that was written is told not to have been',
    file: 'backends/redis/lua/lib-commands.lua',
    find: "execution = unknown and 'may_have_run' or 'not_written',",
    replace: "execution = 'not_written',",
    plan: 'F13',
    caughtBy: ['I8'],
  },
  {
    name: 'run-again',
    says: 'what another instance was given is given to the new one too',
    file: 'backends/redis/lua/commands-rebind.lua',
    find: 'else orphaned[#orphaned + 1] = flat(rec) end',
    replace:
      "else lib.commands_move(rec, { stage = 'queued' }) call('ZREM', key('running', ch), rec.kh) lib.commands_post(rec, nodeId, 'command') end",
    plan: 'F13',
    caughtBy: ['I5'],
  },
  {
    name: 'two-ends',
    says: 'the end that a client reports is kept twice',
    file: 'backends/redis/lua/commands-finish.lua',
    find: 'lib.commands_reported = function(rec, sightings, a)',
    replace:
      "lib.commands_reported = function(rec, sightings, a)\n  lib.commands_retain(rec, { id = rec.commandId .. ':end', kind = 'result' })",
    plan: 'F0',
    caughtBy: ['I3'],
  },
  {
    name: 'admit-anew',
    says: 'an id that is known is admitted once more',
    file: 'backends/redis/lua/commands-admit.lua',
    find: 'if before then return lib.commands_attach(before, wait) end',
    replace: '',
    plan: 'F12',
    caughtBy: ['I3', 'I4', 'I5', 'I6', 'I7', 'I8'],
  },
  {
    name: 'for-ever',
    says: 'results are never removed',
    file: 'backends/redis/lua/lib-commands.lua',
    find: "call('SET', key('result', rec.kh), result, 'PX', ttl)",
    replace: "call('SET', key('result', rec.kh), result)",
    plan: 'F0',
    caughtBy: ['I11'],
  },
  {
    name: 'wide-window',
    says: 'a link is written to without a bound',
    file: 'core/delivery/dispatcher.ts',
    find: 'outlet.window.size >= IN_FLIGHT ||',
    replace: '',
    plan: 'slow',
    caughtBy: ['I10'],
  },
];

export const MUTANTS: readonly Mutant[] = [
  ...DIRECT.map((mutant) => ({ ...mutant, mode: 'direct' as const })),
  ...SHARED.map((mutant) => ({ ...mutant, mode: 'shared' as const })),
];

const ROOT = join(import.meta.dirname, '..', '..');

/** The file with the mistake in it. Throws unless what it replaces stands there exactly once. */
export function mutate({ name, file, find, replace }: Mutant, source: string = join(ROOT, 'src')): string {
  const parts = readFileSync(join(source, file), 'utf8').split(find);
  if (parts.length !== 2) throw new Error(`${name}: ${file} holds what it replaces ${parts.length - 1} times`);
  return parts.join(replace);
}

/** A copy of the sources with one mistake in it; removed when disposed of. */
export function plantMutant(
  mutant: Mutant,
  from: string = join(ROOT, 'src'),
): AsyncDisposable & { readonly source: string } {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-mutant-'));
  const source = join(folder, 'src');
  cpSync(from, source, { recursive: true });
  for (const name of ['node_modules', 'package.json', 'dist', 'schema.graphql'])
    symlinkSync(join(ROOT, name), join(folder, name));
  writeFileSync(join(source, mutant.file), mutate(mutant, source));
  return {
    source,
    async [Symbol.asyncDispose]() {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
