/** Lists mutants of what a relay does when a connection to Redis breaks, and when an error was not caught. */
import type { GuardMutant } from './mutant.ts';

const BREAKS = { test: 'test/backends/redis-breaks.test.ts' } as const;
const BUS = { test: 'test/backends/redis-bus.test.ts' } as const;
const CRASH = { test: 'test/cli/crash.test.ts' } as const;
const GAPS = { test: 'test/relay/gaps.test.ts' } as const;
const OWNED_BUS = { test: 'test/backends/owned-bus.test.ts' } as const;
const SITES = { test: 'test/core/sites.test.ts' } as const;

/** The guard mutants of interruptions and crashes. */
export const INTERRUPTION_GUARDS: readonly GuardMutant[] = [
  {
    name: 'ioredis-subscribes-again',
    says: 'ioredis subscribes again by itself, and does not catch the failure of that',
    file: 'backends/redis/client.ts',
    find: 'autoResubscribe: false,',
    replace: 'autoResubscribe: true,',
    judge: BREAKS,
  },
  {
    name: 'asking-not-caught',
    says: 'the failure of an ASKING that ioredis sends is not caught',
    file: 'backends/redis/client.ts',
    find: "cluster.on('+node', catchAsking);",
    replace: 'void catchAsking;',
    judge: BREAKS,
  },
  {
    name: 'bus-message-throws',
    says: 'a message on the bus that cannot be used is thrown out of the listener of the connection',
    file: 'backends/redis/subscriber.ts',
    find: "this.#options.log.warn({ err: error, characters: text.length }, 'a message on the bus cannot be used');",
    replace: 'throw error;',
    judge: BUS,
  },
  {
    name: 'gap-after-break-not-told',
    says: 'no listener learns that the connection for messages was interrupted',
    file: 'backends/redis/bus.ts',
    find: 'onRestored: () => listeners.interrupted(),',
    replace: 'onRestored: () => {},',
    judge: BUS,
  },
  {
    name: 'lost-publications-not-told',
    says: 'other nodes do not learn that events could not be published',
    file: 'backends/redis/bus.ts',
    find: 'losing.add(partition);',
    replace: '',
    judge: BUS,
  },
  {
    name: 'topics-untold-to-who-forgot',
    says: 'a process that had taken another one for dead is not told again what that listens to',
    file: 'backends/owned/bus.ts',
    find: 'if (note.isNew === true) this.#introduce(from);',
    replace: '',
    judge: OWNED_BUS,
  },
  {
    name: 'reports-told-by-the-link',
    says: 'the relay of a link publishes a report, which the end of its command may overtake',
    file: 'backends/owned/routed.ts',
    find: "if (call.port !== 'commands' || call.method !== 'report') return runIn(stores, call);",
    replace: 'if (call.port) return runIn(stores, call);',
    judge: { test: 'test/backends/owned-requests.test.ts' },
  },
  {
    name: 'events-before-topics-untold',
    says: 'a process does not say that it published before it knew what another one listens to',
    file: 'backends/owned/bus.ts',
    find: 'const hasPublished = this.#hasPublished && !this.#others.has(from);',
    replace: 'const hasPublished = false;',
    judge: OWNED_BUS,
  },
  {
    name: 'gap-of-site-not-told',
    says: 'viewers of a site are not told of a gap',
    file: 'core/sites/site-events.ts',
    find: '() => (lost = 1),',
    replace: '() => {},',
    judge: GAPS,
  },
  {
    name: 'session-read-for-who-came-later',
    says: 'viewers learn what a read that began before their grant says of their session',
    file: 'core/sites/session-watch.ts',
    find: 'for (const reader of waiting[i] ?? [])',
    replace: 'for (const reader of watched.get(sessionId)?.readers ?? [])',
    judge: SITES,
  },
  {
    name: 'gap-of-connections-not-told',
    says: 'subscribers to connections are not told of a gap',
    file: 'core/connections/connections.ts',
    find: '() => (lost = 1),',
    replace: '() => {},',
    judge: GAPS,
  },
  {
    name: 'gap-of-command-not-told',
    says: 'subscribers to one command are not told of a gap',
    file: 'core/commands/command-updates.ts',
    find: '() => (lost = Math.max(1, lost)),',
    replace: '() => {},',
    judge: GAPS,
  },
  {
    name: 'gap-of-commands-not-told',
    says: 'subscribers to events of commands are not told of a gap',
    file: 'core/commands/events.ts',
    find: '() => sampler.lost(),',
    replace: '() => {},',
    judge: GAPS,
  },
  {
    name: 'unheard-announcements-forgotten',
    says: 'a node that did not hear announcements of filters does not say that it published nothing in between',
    file: 'core/commands/events.ts',
    find: 'if (now <= this.#lapsedUntil && !feed.others.has(nodeId)) feed.sampler.lost();',
    replace: '',
    judge: GAPS,
  },
  {
    name: 'rejection-swallowed',
    says: 'a rejection that nothing caught is ignored',
    file: 'bin.ts',
    find: "process.on('unhandledRejection', handle);",
    replace: "process.on('unhandledRejection', () => {});",
    judge: CRASH,
  },
  {
    name: 'links-not-told-of-crash',
    says: 'a relay that ends because of an error tells its links nothing',
    file: 'cli/crash.ts',
    find: 'await relay?.abort();',
    replace: '',
    judge: CRASH,
  },
];
