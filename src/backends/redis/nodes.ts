/** Core's NodeStore over Redis: node ids and their leases, mailboxes, and the search for commands that are due. */
import { randomUUID } from 'node:crypto';
import type { DispatcherNode, MailboxRow, NodeStore } from '../../../core/delivery/nodes.ts';
import type { CommandKey } from '../../../core/ids.ts';
import { scanSorted, type PageRequest, type Scan } from '../../../core/page.ts';
import type { RedisParts } from '../parts.ts';
import { silentNodes, lookAtNodes } from './look.ts';
import { HOME, Member } from './member.ts';
import { listOf } from '../replies.ts';
import { decodeNode, encodeRow } from './rows.ts';
import type { Store } from '../store/store.ts';
import type { Reply } from '../types.ts';

export type RedisNodes = NodeStore & {
  /** Releases every id that is still held. */
  close(): Promise<void>;
};

/**
 * Creates Core's NodeStore over Redis. All calls of the backend are made as the first node that it attaches, so the
 * epoch of that node fences them.
 */
export function createRedisNodes(parts: RedisParts): RedisNodes {
  const { store } = parts;
  const members = new Map<string, Member>();
  const leaving = new Set<Promise<void>>();
  let speaker: Member | null = null;
  store.onVerdict((_partition, verdict) => speaker?.verdict(verdict));
  const leave = (member: Member): void => {
    if (members.get(member.nodeId) === member) members.delete(member.nodeId);
    if (speaker === member) speaker = null;
    const left = member.leave();
    leaving.add(left);
    void left.then(() => leaving.delete(left));
  };
  return {
    async attach(nodeId, listener) {
      const member = new Member({ parts, nodeId, listener, speaks: speaker === null });
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
    list: (page) => list(parts, page),
    silent: () => silentNodes(parts),
    async close() {
      for (const member of members.values()) leave(member);
      await Promise.all(leaving);
    },
  };
}

async function post(store: Store, nodeId: string, row: MailboxRow): Promise<boolean> {
  if (row.kind !== 'pulse') {
    const args = [nodeId, row.kind, ...encodeRow(row)];
    return (await store.act(partitionOf(store, row), 'nodes-post', args)) === 1;
  }
  const token = randomUUID();
  const posted = await Promise.all(
    partitions(store).map((partition) => store.act(partition, 'nodes-post', [nodeId, 'pulse', 'token', token])),
  );
  return posted.every((one) => one === 1);
}

function partitionOf(store: Store, row: Exclude<MailboxRow, { kind: 'pulse' }>): number {
  if (row.kind === 'drain' || row.kind === 'question' || row.kind === 'answer') return HOME;
  if (row.kind === 'kick') return store.partitionOfUser(row.client.userId);
  return store.partitionOfUser(row.kind === 'reply' ? row.reply.command.userId : row.key.userId);
}

/** Lists the due commands of all partitions, the longest due first. */
async function due(store: Store, limit: number): Promise<readonly CommandKey[]> {
  const found = await Promise.all(partitions(store).map((partition) => dueIn(store, partition, limit)));
  return found
    .flatMap((rows) => rows.map(texts))
    .map(([since, userId = '', clientId = '', commandId = '']) => ({ since, key: { userId, clientId, commandId } }))
    .sort((a, b) => Number(a.since) - Number(b.since))
    .slice(0, limit)
    .map(({ key }) => key);
}

/**
 * Lists the due commands of a partition. Repeats the bounded search until it found enough or looked into all scopes.
 */
async function dueIn(store: Store, partition: number, limit: number): Promise<readonly Reply[]> {
  for (;;) {
    const [more, ...rows] = listOf(await store.act(partition, 'nodes-due', [limit]));
    if (more !== 1) return rows;
  }
}

async function list(parts: RedisParts, page: PageRequest): Promise<Scan<DispatcherNode>> {
  const { store } = parts;
  const { leases, gone } = await lookAtNodes(parts, HOME);
  const after = page.after?.[0] ?? '';
  const ids = [...new Set([...leases.keys(), ...gone])].filter((nodeId) => nodeId > after).sort();
  const replies = await store.read(ids.map((nodeId) => reportOf(store, nodeId)));
  const nodes = ids.flatMap((nodeId, i) => decodeNode(nodeId, replies[i] ?? null) ?? []);
  return scanSorted(nodes, page, ({ nodeId }) => [nodeId]);
}

function reportOf(store: Store, nodeId: string): readonly [string, ...string[]] {
  return ['HMGET', store.key(HOME, 'node', nodeId), 'report', 'updatedAt'];
}

function partitions(store: Store): readonly number[] {
  return Array.from({ length: store.partitions }, (_, partition) => partition);
}

function texts(reply: Reply): readonly string[] {
  return Array.isArray(reply) ? (reply as readonly Reply[]).map(String) : [];
}
