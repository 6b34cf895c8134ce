/** Core's NodeStore over Redis: node ids and their leases, mailboxes, and the search for due commands. */
import { randomUUID } from 'node:crypto';
import type {
  DispatcherNode,
  MailboxRow,
  NodeListener,
  NodeReport,
  NodeRow,
  NodeStore,
} from '../../core/commands/node-store.ts';
import { BoundedMap } from '../../core/collections.ts';
import { CallboardError } from '../../core/errors.ts';
import type { CommandKey } from '../../core/ids.ts';
import { trustJson } from '../../core/json.ts';
import { scanSorted, type PageRequest, type Scan } from '../../core/page.ts';
import { commandDeps, type RedisDeps } from './deps.ts';
import { moveQueue } from './commands/store.ts';
import { createReaper, type Reaper } from './nodes-reaper.ts';
import { decodeNode, decodeRows, encodeReport, encodeRow, heldOf, type RawRow } from './nodes-rows.ts';
import { lookAtNodes, silentNodes } from './nodes-listed.ts';
import { pause, readMailbox } from './nodes-mailbox.ts';
import { partitionsOf } from './store-partitions.ts';
import type { Store } from './store.ts';
import { listOf, type Reply } from './replies.ts';
import type { Verdict } from './program-calls.ts';
import type { RecordedEnd } from './waiters-local.ts';

type RedisNodes = NodeStore & {
  /** Releases all node ids that this process still holds. */
  close(): Promise<void>;
};

/**
 * Creates core's NodeStore over Redis. All calls of the backend are made in the name of the first node that it
 * attaches, so the epoch of that node fences them.
 */
export function createRedisNodes(deps: RedisDeps): RedisNodes {
  const { store } = deps;
  const members = new Map<string, Member>();
  const leaving = new Set<Promise<void>>();
  let speaker: Member | null = null;
  store.onVerdict((_partition, verdict) => speaker?.verdict(verdict));
  deps.waits?.onEnd((end) => speaker?.reply(end));
  const leave = (member: Member): void => {
    if (members.get(member.nodeId) === member) members.delete(member.nodeId);
    if (speaker === member) speaker = null;
    const left = member.leave();
    leaving.add(left);
    void left.then(() => leaving.delete(left));
  };
  return {
    async attach(nodeId, listener) {
      const member = new Member({ deps, nodeId, listener, speaks: speaker === null });
      speaker ??= member;
      try {
        await member.attach();
      } catch (error) {
        if (speaker === member) speaker = null;
        throw error;
      }
      members.set(nodeId, member);
      return () => leave(member);
    },
    beat: (nodeId, report) => members.get(nodeId)?.beat(report),
    post: (nodeId, row) => post(store, nodeId, row),
    due: (limit) => due(store, limit),
    async get(nodeId) {
      const [reply = null] = await store.read([reportOf(store, nodeId)]);
      return decodeNode(nodeId, reply);
    },
    list: (page) => list(deps, page),
    silent: () => silentNodes(deps),
    async close() {
      for (const member of members.values()) leave(member);
      await Promise.all(leaving);
    },
  };
}

async function post(store: Store, nodeId: string, row: NodeRow): Promise<boolean> {
  if (row.kind !== 'pulse') {
    const args = [nodeId, row.kind, ...encodeRow(row)];
    const partition = row.kind === 'kick' ? store.partitionOfUser(row.client.userId) : HOME;
    return (await store.act(partition, 'nodes-post', args)) === 1;
  }
  const token = randomUUID();
  const posted = await Promise.all(
    partitionsOf(store).map((partition) => store.act(partition, 'nodes-post', [nodeId, 'pulse', 'token', token])),
  );
  return posted.every((one) => one === 1);
}

/** Lists the due commands of all partitions, the longest due first. */
async function due(store: Store, limit: number): Promise<readonly CommandKey[]> {
  const found = await Promise.all(partitionsOf(store).map((partition) => dueIn(store, partition, limit)));
  return found
    .flatMap((rows) => rows.map((row) => listOf(row).map(String)))
    .map(([since, userId = '', clientId = '', commandId = '']) => ({ since, key: { userId, clientId, commandId } }))
    .sort((a, b) => Number(a.since) - Number(b.since))
    .slice(0, limit)
    .map(({ key }) => key);
}

/**
 * Lists the due commands of a partition. Repeats the limited search until it has found enough or has searched all
 * scopes.
 */
async function dueIn(store: Store, partition: number, limit: number): Promise<readonly Reply[]> {
  for (;;) {
    const [more, ...rows] = listOf(await store.act(partition, 'nodes-due', [limit]));
    if (more !== 1) return rows;
  }
}

async function list(deps: RedisDeps, page: PageRequest): Promise<Scan<DispatcherNode>> {
  const { store } = deps;
  const { leases, gone } = await lookAtNodes(deps, HOME);
  const after = page.after?.[0] ?? '';
  const ids = [...new Set([...leases.keys(), ...gone])].filter((nodeId) => nodeId > after).sort();
  const replies = await store.read(ids.map((nodeId) => reportOf(store, nodeId)));
  const nodes = ids.flatMap((nodeId, i) => decodeNode(nodeId, replies[i] ?? null) ?? []);
  return scanSorted(nodes, page, ({ nodeId }) => [nodeId]);
}

function reportOf(store: Store, nodeId: string): readonly [string, ...string[]] {
  return ['HMGET', store.key(HOME, 'node', nodeId), 'report', 'updatedAt'];
}

// A node that this process holds: attaches it, renews its lease, reads its mailboxes, and attaches it again after a
// loss.

/** The partition that stores the reports of the nodes. Their leases and mailboxes are in every partition. */
const HOME = 0;
const RETRY_MS = 1_000;
/** The most unfinished pulses that are tracked. */
const PULSES = 64;

type MemberOptions = {
  readonly deps: RedisDeps;
  readonly nodeId: string;
  readonly listener: NodeListener;
  /** Whether calls of this backend are made in the name of this node, so that its epoch fences them. */
  readonly speaks: boolean;
};

type LossCause = 'fenced' | 'store_lost';

/** A node that this process holds. It has an epoch, a lease and a mailbox in every partition. */
class Member {
  readonly #options: MemberOptions;
  readonly #boot = randomUUID();
  readonly #partitions: readonly number[];
  /** The epochs of the node, by partition; empty before it is attached. */
  #epochs: readonly number[] = [];
  #state: 'taking' | 'up' | 'left' = 'taking';
  #lost: LossCause | null = null;
  /** Whether the lease ended (or may have ended) and was renewed afterwards. */
  #lapsed = false;
  #stopReading: (() => void)[] = [];
  /** The number of delivered rows of each unfinished pulse, by its token. */
  readonly #pulses = new BoundedMap<string, number>({ most: PULSES });
  readonly #reaper: Reaper;
  /** Ends the pause before the next attempt to attach. */
  wake: () => void = () => {};

  constructor(options: MemberOptions) {
    this.#options = options;
    const { deps, listener } = options;
    const commands = commandDeps(deps);
    this.#reaper = createReaper({
      deps,
      linksLost: (connections) => listener.linksLost(connections),
      park: (client, binding) => moveQueue(commands, client, { binding, link: 'down' }),
    });
    this.#partitions = partitionsOf(deps.store);
  }

  get nodeId(): string {
    return this.#options.nodeId;
  }

  /**
   * Registers this process under the node id. If another process holds the id, waits until the lease of that process
   * ends, because it may just have been killed. Throws if it still holds the id after that.
   */
  async attach(): Promise<void> {
    const { deps, nodeId } = this.#options;
    for (let leftMs = deps.leaseMs + RETRY_MS; ; leftMs -= RETRY_MS) {
      try {
        await this.#take();
        return this.#read();
      } catch (error) {
        const isHeld = error instanceof CallboardError && error.code === 'invalid_argument';
        if (!isHeld || leftMs <= 0) throw error;
        if (leftMs > deps.leaseMs)
          deps.log.warn({ node: nodeId }, 'another process holds the id of this node: waiting until its lease ends');
        await pause(deps.system, this, RETRY_MS);
      }
    }
  }

  async beat(report: NodeReport): Promise<void> {
    if (this.#state !== 'up') return;
    const { deps, nodeId, listener } = this.#options;
    const text = encodeReport(report);
    await Promise.all(
      this.#partitions.map(async (partition) => {
        const args = [nodeId, this.#boot, deps.leaseMs, partition === HOME ? text : null, deps.retentionMs];
        const found = await deps.store.act(partition, 'nodes-beat', args);
        if (found === null) return this.verdict('FENCED');
        const [lapsed, ...gone] = listOf(found).map(String);
        if (lapsed === '1') this.#lapsed = true;
        // Not awaited, because the next heartbeat must not wait for the cleanup after other nodes.
        this.#reaper.begin(partition, gone);
      }),
    ).catch((error: unknown) => {
      // The answer to this heartbeat was lost. The heartbeat may have renewed a lease that had ended.
      this.#lapsed = true;
      throw error;
    });
    if (this.#state !== 'up' || !this.#lapsed) return;
    this.#lapsed = false;
    listener.revived();
  }

  /** Releases the node id. Resolves once everything that the node held is cleaned up. Never rejects. */
  async leave(): Promise<void> {
    if (this.#state === 'left') return;
    this.#state = 'left';
    this.wake();
    this.#stop();
    this.#identify(null);
    try {
      await Promise.all(this.#partitions.map((partition) => this.#reaper.clear(partition, this.nodeId, this.#boot)));
    } catch (error) {
      this.#options.deps.log.warn(
        { err: error },
        'a node could not be released: other nodes clean up when its lease ends',
      );
    }
  }

  /** Called when the store has refused a call of this node. Attaches the node again. */
  verdict(verdict: Verdict): void {
    if (this.#state === 'left') return;
    if (verdict === 'LOST') this.#lost = 'store_lost';
    else this.#lost ??= 'fenced';
    if (this.#state === 'up') void this.#comeBack();
  }

  /**
   * Attaches the node again, and calls `lost` of the listener. If the node cannot be attached yet, calls `lost` all the
   * same, and repeats the attempt.
   */
  async #comeBack(): Promise<void> {
    const { deps, listener } = this.#options;
    this.#state = 'taking';
    this.#stop();
    while (this.#state === 'taking') {
      this.#identify(null);
      const held = await this.#take().then(
        () => true,
        (error: unknown) => deps.log.error({ err: error }, 'a node could not take up its id again') ?? false,
      );
      const cause = this.#lost ?? 'fenced';
      this.#lost = null;
      deps.log.error({ node: this.nodeId, cause }, 'this node lost what it held');
      await listener
        .lost(cause)
        .catch((error: unknown) => deps.log.error({ err: error }, 'the handling of a loss failed'));
      if (held && this.#lost === null) return this.#read();
      if (!held) await pause(deps.system, this, RETRY_MS);
    }
  }

  async #take(): Promise<void> {
    try {
      const taken = await Promise.all(this.#partitions.map((partition) => this.#takeIn(partition)));
      if (this.#isLeft()) return;
      this.#epochs = taken;
      this.#identify(taken);
    } catch (error) {
      // The node may be attached in some partitions without reading its mailboxes there, so it is released everywhere.
      const freed = this.#partitions.map((partition) => this.#reaper.clear(partition, this.nodeId, this.#boot));
      await Promise.allSettled(freed);
      throw error;
    }
  }

  async #takeIn(partition: number): Promise<number> {
    const { deps, nodeId } = this.#options;
    for (;;) {
      const args = [nodeId, this.#boot, deps.leaseMs, this.#epochs[partition] ?? null];
      const reply = await deps.store.act(partition, 'nodes-attach', args);
      const [kind, epoch, lost] = listOf(reply);
      if (kind === 'taken')
        throw new CallboardError('invalid_argument', `NODE_ID: another live process has the id "${nodeId}"`);
      if (lost === 1) this.#lost = 'store_lost';
      if (kind === 'attached') return Number(epoch);
      await this.#reaper.clear(partition, nodeId, this.#boot);
      await this.#reaper.clear(partition, nodeId, null);
    }
  }

  #identify(epochs: readonly number[] | null): void {
    const { deps, nodeId, speaks } = this.#options;
    if (!speaks) return;
    for (const partition of this.#partitions) {
      const epoch = epochs?.[partition];
      deps.store.identify(partition, epoch === undefined ? null : { nodeId, epoch });
    }
  }

  #read(): void {
    if (this.#isLeft()) return;
    this.#state = 'up';
    const { deps, nodeId } = this.#options;
    this.#stopReading = this.#partitions.map((partition) =>
      readMailbox({
        deps,
        key: deps.store.key(partition, 'mailbox', `${nodeId}:${this.#epochs[partition]}`),
        take: (row) => this.#deliver(row),
      }),
    );
  }

  #stop(): void {
    for (const stop of this.#stopReading.splice(0)) stop();
  }

  async #deliver({ fields }: RawRow): Promise<void> {
    const { deps } = this.#options;
    const { store, held } = deps;
    if (fields.get('kind') === 'pulse') return this.#countPulse(fields.get('token') ?? '');
    const large = fields.get('large');
    const [found] = large === undefined ? [] : await store.read([['HGET', large, fields.get('field') ?? '']]);
    const result = large === undefined ? fields.get('result') : found;
    const offered = heldOf(fields);
    const rows = decodeRows(fields, { result: typeof result === 'string' ? trustJson(result) : null, offered });
    if (rows.length === 0) deps.log.warn({}, 'a mailbox row of an unknown kind was ignored');
    for (const row of rows) {
      if (row.kind === 'command' && offered) held?.put(row.key, offered);
      if (row.kind === 'reply') this.reply(row.reply);
      else this.#hand(row);
    }
  }

  /**
   * Counts a row of a pulse. A node posts the rows of a pulse into its own mailboxes, one in each partition. Once all
   * of them were delivered, the node knows that it reads all its mailboxes.
   */
  #countPulse(token: string): void {
    const arrived = (this.#pulses.get(token) ?? 0) + 1;
    this.#pulses.set(token, arrived);
    if (arrived < this.#partitions.length) return;
    this.#pulses.delete(token);
    this.#hand({ kind: 'pulse' });
  }

  /** Replies to each caller of this node whose wait is satisfied by the record. */
  reply({ command, result }: RecordedEnd): void {
    if (this.#state !== 'up') return;
    const { deps, nodeId } = this.#options;
    for (const { request } of deps.waits?.take(nodeId, command) ?? [])
      this.#hand({ kind: 'reply', reply: { rpcId: request.rpcId, command, result } });
  }

  #hand(row: MailboxRow): void {
    const { deps, listener } = this.#options;
    if (this.#state !== 'up') return;
    try {
      listener.deliver(row);
    } catch (error) {
      deps.log.error({ err: error }, 'the handling of a mailbox row failed');
    }
  }

  #isLeft(): boolean {
    return this.#state === 'left';
  }
}
