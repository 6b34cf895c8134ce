/** Lists the mutants that copy mistakes known from other relays. Fault runs must catch them. */
import type { Mistake } from './plant.ts';

/** The mutants that copy known mistakes of relays over a shared store. */
export const LISTED_MUTANTS: readonly Mistake[] = [
  {
    name: 'send-before-mark',
    says: 'a command is written first, and marked when its client answers',
    file: 'backends/redis/commands/acts.ts',
    find: '  return listOf(await store.act(store.partitionOfUser(of.userId), name, args));',
    replace: `  const at = store.partitionOfUser(of.userId);
  const later: Map<unknown, Args> = Reflect.get(store, 'later') ?? new Map();
  Reflect.set(store, 'later', later);
  if (name === 'commands-dispatch') {
    const client = store.key(at, 'client', String(args[0]));
    const [fields] = await store.read([['HMGET', client, 's' + args[1], 'a' + args[1], 'p' + args[1]]]);
    const [state, asked, params = null] = listOf(fields);
    const found = typeof state === 'string' ? state + String(asked) : null;
    if (String(found).split('\\0')[4] !== 'queued') return ['skip'];
    later.set(String(args[0]) + args[1], args);
    return ['dispatch', found, params, '30000'];
  }
  const mark = name === 'commands-finish' ? later.get(String(args[0]) + args[15]) : undefined;
  if (mark) await store.act(at, 'commands-dispatch', mark);
  return listOf(await store.act(at, name, args));`,
    plan: 'F13',
    caughtBy: ['I5', 'I8'],
  },
  {
    name: 'release-twice',
    says: 'an end releases its own reservation and one more',
    file: 'backends/redis/commands-records.lua',
    find: "drop(key('reserved', rec.sh), name)",
    replace: "call('ZREM', key('reserved', rec.sh), name) call('ZPOPMIN', key('reserved', rec.sh))",
    plan: 'slow',
    caughtBy: ['I6'],
  },
  {
    name: 'release-early',
    says: 'the dispatch mark releases the reservation, before the end does',
    file: 'backends/redis/commands-records.lua',
    find: 'lib.commands_mark = function(rec, by)',
    replace: "lib.commands_mark = function(rec, by) drop(key('reserved', rec.sh), lib.commands_name(rec))",
    plan: 'slow',
    caughtBy: ['I6'],
  },
  {
    name: 'no-instance-fence',
    says: 'an end is accepted from any instance of the client',
    file: 'backends/redis/commands.lua',
    find: "if rec.stage == 'terminal' or rec.boundInstanceId ~= a[2] then\n",
    replace: "if rec.stage == 'terminal' then\n",
    plan: 'F13f',
    caughtBy: ['I7'],
  },
  {
    name: 'no-epoch',
    says: 'the close of an old link unbinds the new one',
    file: 'backends/redis/commands.lua',
    find: "if a[5] ~= 'up' and epoch ~= boundEpoch then return false end",
    replace: '',
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
    file: 'backends/redis/nodes-rows.ts',
    find: '  reading.client = client;\n',
    replace: "  reading.client = client;\n  if (reading.cursor !== '0-0') reading.cursor = reading.trimmed = '$';\n",
    plan: 'F8d',
    caughtBy: ['I1', 'I4'],
  },
  {
    name: 'reply-before-record',
    says: 'callers get the end before it is recorded',
    file: 'backends/redis/commands/acts.ts',
    find: '  return listOf(await store.act(store.partitionOfUser(of.userId), name, args));',
    replace: `  const at = store.partitionOfUser(of.userId);
  if (name === 'commands-finish') {
    const id = String(args[15]);
    const [kept] = await store.read([['HMGET', store.key(at, 'client', String(args[0])), 's' + id, 'a' + id, 'w' + id]]);
    const [state, asked, waits] = listOf(kept).map(String);
    const [rev, since, place, version, , proven, , , , ...rest] = String(state).split('\\0');
    const ended = [rev, since, place, version, 'terminal', proven, 'completed', 'reported_by_client', String(Date.now())];
    const record = [...ended, ...rest].join('\\0') + asked;
    const rows = String(waits).split('\\0');
    for (let i = 0; i + 6 < rows.length; i += 6) {
      const fields = ['rpcId', rows[i] ?? '', 'record', record, 'result', args[3] ?? null];
      await store.act(at, 'nodes-post', [rows[i + 1] ?? '', 'reply', ...fields]);
    }
    await new Promise((done) => setTimeout(done, 300));
  }
  return listOf(await store.act(at, name, args));`,
    plan: 'F0',
    caughtBy: ['I4'],
  },
  {
    name: 'counted-again',
    says: 'an end that is sent again because it got no answer counts as another end',
    file: 'backends/redis/commands.lua',
    find: 'if sighting.messageId == a[10] then',
    replace: 'if false then',
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
    find: 'await writeObject(root, ref, bytes).catch((error: unknown) => {',
    replace:
      'void new Promise((done) => setTimeout(done, 300)).then(() => writeObject(root, ref, bytes)).catch((error: unknown) => {',
    plan: 'F17k',
    caughtBy: ['payloads'],
  },
];
