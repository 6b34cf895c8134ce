/** Lists mutants that copy mistakes known from other relays, which fault runs must catch. */
import type { Mistake } from './plant.ts';

/** The mutants that copy known mistakes of relays over a shared store. */
export const LISTED_MUTANTS: readonly Mistake[] = [
  {
    name: 'send-before-mark',
    says: 'a command is written first, and marked when its client answers',
    file: 'backends/redis/commands/store.ts',
    find: `    dispatch: (key, binding, attempt) => dispatch(deps, key, { binding, attempt }),
    report: (key, reported) => report(deps, key, reported),
    finish: (key, end) => finish(deps, key, end),
`,
    replace: `    async dispatch(key, binding, attempt) {
      const [command] = await getCommands(redis, [key]);
      if (command?.stage !== 'queued') return { kind: 'skip' };
      later.set(key.commandId, () => dispatch(deps, key, { binding, attempt }));
      const client = store.key(store.partitionOfUser(key.userId), 'client', store.hash(key.userId, key.clientId));
      const [params = null] = await store.read([['HGET', client, 'p' + key.commandId]]);
      return { kind: 'dispatch', command, params: params as JsonText | null, remainingMs: 30_000 };
    },
    report: (key, reported) => report(deps, key, reported),
    async finish(key, end) {
      await later.get(key.commandId)?.();
      return finish(deps, key, end);
    },
`,
    also: [
      {
        file: 'backends/redis/commands/store.ts',
        find: '  const { store } = deps;\n  return {\n    windowMs',
        replace:
          '  const { store } = deps;\n  const later = new Map<string, () => unknown>();\n  return {\n    windowMs',
      },
    ],
    plan: 'F13',
    caughtBy: ['I5', 'I8'],
  },
  {
    name: 'release-twice',
    says: 'an end releases its own reservation and one more',
    file: 'backends/redis/commands/transaction.ts',
    find: "this.write(['ZREM', this.call.key('reserved', sh)], [[userId, clientId, commandId].join(NUL)]);",
    replace: `this.write(['ZREM', this.call.key('reserved', sh)], [[userId, clientId, commandId].join(NUL)]);
    this.write(['ZPOPMIN', this.call.key('reserved', sh)], []);`,
    plan: 'slow',
    caughtBy: ['I6'],
  },
  {
    name: 'release-early',
    says: 'the dispatch mark releases the reservation, before the end does',
    file: 'backends/redis/commands/transaction.ts',
    find: '    entry.markedBy = markedBy ?? entry.markedBy;',
    replace: `    entry.markedBy = markedBy ?? entry.markedBy;
    const { userId, clientId, commandId, scopeId } = command;
    const reserved = this.call.key('reserved', this.deps.hash(scopeId));
    this.write(['ZREM', reserved], [[userId, clientId, commandId].join(NUL)]);`,
    plan: 'slow',
    caughtBy: ['I6'],
  },
  {
    name: 'no-instance-fence',
    says: 'an end is accepted from any instance of the client',
    file: 'core/commands/rules.ts',
    find: 'if (before.boundInstanceId !== instanceId)',
    replace: 'if (before.boundInstanceId === null)',
    plan: 'F13f',
    caughtBy: ['I7'],
  },
  {
    name: 'no-epoch',
    says: 'the close of an old link unbinds the new one',
    file: 'core/commands/rules.ts',
    find: "return link === 'up' && !begun ? epoch >= bound.epoch : epoch === bound.epoch;",
    replace: "return link === 'up' && !begun ? epoch >= bound.epoch : true;",
    also: [
      {
        file: 'core/commands/link-session.ts',
        find: 'if (!connection || dispatcher.find(client)) return;',
        replace: 'if (dispatcher.find(client)) return;',
      },
    ],
    plan: 'F14l',
    caughtBy: ['I1', 'I4'],
  },
  {
    name: 'left-unread',
    says: 'after an interruption a mailbox is read from new entries on, without those that were not read yet',
    file: 'backends/redis/nodes-mailbox.ts',
    find: '  reading.client = client;\n',
    replace: "  reading.client = client;\n  if (reading.cursor !== '0-0') reading.cursor = reading.trimmed = '$';\n",
    plan: 'F8d',
    caughtBy: ['I1', 'I4'],
  },
  {
    name: 'reply-before-record',
    says: 'callers get the end before it is recorded',
    file: 'backends/redis/commands/store.ts',
    find: `  const { payload, kept } = end;
`,
    replace: `  const { payload, kept } = end;
  const [before] = await getCommands(deps, [key]);
  if (before) {
    const end = { stage: 'terminal', outcome: 'completed', execution: 'reported_by_client' } as const;
    waits.end({ command: { ...before, ...end, terminalAt: Date.now() }, result: payload });
    await new Promise((done) => setTimeout(done, 300));
  }
`,
    plan: 'F0',
    caughtBy: ['I4'],
  },
  {
    name: 'counted-again',
    says: 'an end that is sent again because it got no answer counts as another end',
    file: 'core/commands/rules.ts',
    find: '    if (seen) return',
    replace: '    if (seen === null) return',
    plan: 'F8d',
    caughtBy: ['I3'],
  },
  {
    name: 'no-amnesty',
    says: 'the first node that reaches the store again reaps all others',
    file: 'backends/redis/nodes.lua',
    find: 'if now - since < lease then return { lapsed } end',
    replace: '',
    plan: 'F6h',
    caughtBy: ['amnesty'],
  },
  {
    name: 'reference-before-file',
    says: 'a spilled payload is referred to before it is written',
    file: 'backends/spill/directory.ts',
    find: 'const sha256 = await files.write({ name, expiresAt }, content).catch((error: unknown) => {',
    replace:
      "const sha256 = createHash('sha256').update(content).digest('base64url');" +
      'void new Promise((done) => setTimeout(done, 300)).then(() => files.write({ name, expiresAt }, content)).catch((error: unknown) => {',
    plan: 'F17k',
    caughtBy: ['payloads'],
  },
];
