/**
 * The names of all keys and channels in Redis, and the partition of a user.
 *
 * Besides this file, only `commands/transaction-call.ts` makes names, in the same form.
 */
import calculateSlot from 'cluster-key-slot';

/**
 * Every kind of key that callboard stores in Redis, with its content. The name of a key is `<tag>:<kind>`. If the key
 * belongs to a client, a user, a scope or the like (see `holds`), one or two hashes or ids follow, each after a colon.
 * The tag is the partition's, in braces, so that all keys of a partition are in one slot of a cluster. No name contains
 * a text of a user. `ends` says when a key is removed. `ttl`: at its expiry. `emptied`: with its last member. `node`:
 * with its node. `kept`: never.
 */
export const KINDS = {
  meta: {
    holds:
      'HASH: store, schema, partitions, floor, watched, epoch, counted, forgot, calls:<node>, what users hold of shares (see lib-shares in shares.lua); of a namespace: cursor, spill',
    ends: 'kept',
  },

  nodes: { holds: 'ZSET: node, by the end of its lease; 0: it is being reaped, 1: it leaves', ends: 'emptied' },
  nodesgone: { holds: 'ZSET: node that died, by when it is removed from the list', ends: 'emptied' },
  node: {
    holds: 'HASH of a node (by its id): epoch, boot, fenced, beatAt, since, report, updatedAt',
    ends: 'ttl',
  },
  mailbox: { holds: 'STREAM of a node and its epoch: rows that it has not read yet', ends: 'node' },
  bound: { holds: 'SET of a node: clients bound to it', ends: 'emptied' },

  conn: { holds: 'HASH of a client: its connection row', ends: 'ttl' },
  conns: { holds: 'ZSET by name: user NUL client, of all rows', ends: 'emptied' },
  connusers: { holds: 'ZSET by name: users with a row', ends: 'emptied' },
  conngone: { holds: 'ZSET: user NUL client NUL its hash, by when its row is forgotten', ends: 'emptied' },

  reconnects: { holds: 'ZSET of a slot of time: user NUL client, by how often its link opened again', ends: 'ttl' },

  ctx: { holds: 'HASH of a client: context -> JSON', ends: 'ttl' },
  ctxleft: {
    holds: 'HASH of a client that knows places: context that is no longer reported -> when it left',
    ends: 'ttl',
  },
  win: { holds: 'HASH of a client: window -> JSON', ends: 'ttl' },
  ctxwin: { holds: 'HASH of a client: window -> workers and busy ones of its contexts', ends: 'ttl' },
  ctxs: { holds: 'ZSET by name: user NUL client NUL context', ends: 'emptied' },
  wins: { holds: 'ZSET by name: user NUL client NUL window', ends: 'emptied' },

  client: {
    holds: 'HASH of a client: its live commands and the link that it is bound to (see commands/record.ts)',
    ends: 'emptied',
  },
  cmdusers: { holds: 'ZSET by name: user NUL hash, of users with a span', ends: 'emptied' },
  names: {
    holds: 'ZSET of a user and span, by name: client NUL command, of the commands admitted in it',
    ends: 'ttl',
  },
  ended: { holds: 'HASH of a user and span: records, or marks, of the commands that ended in it', ends: 'ttl' },
  endorder: { holds: 'LIST of a user and span: the commands with a record, in the order of their ends', ends: 'ttl' },
  endedoldest: { holds: 'ZSET: user NUL hash, by a time not later than its oldest in `endorder`', ends: 'emptied' },
  endedover: { holds: 'ZSET: user NUL hash, by ended records, of users over their guarantee', ends: 'emptied' },
  reduced: {
    holds: 'HASH of a user, and of all: until when listings lack commands, the greatest id that left no mark',
    ends: 'ttl',
  },
  results: { holds: 'HASH of a user and span: results of the commands that ended in it', ends: 'ttl' },
  spans: {
    holds: 'ZSET of a user: its spans of time, by when they are removed (see lib-spans in commands-records.lua)',
    ends: 'emptied',
  },
  endedspans: { holds: 'ZSET: user hash NUL span NUL user, by when it is removed', ends: 'emptied' },
  endedcount: { holds: 'HASH: second -> how many ended commands are forgotten in it', ends: 'emptied' },
  admitted: {
    holds: 'ZSET of an hour: user hash, client hash and id of the commands admitted in it, by when',
    ends: 'ttl',
  },
  reserved: {
    holds: 'ZSET of a scope: user NUL client NUL command of its live commands, by deadline',
    ends: 'emptied',
  },
  members: { holds: 'HASH of a scope with several users: user hash -> its live commands', ends: 'emptied' },
  scopes: { holds: 'ZSET by name: scopes with a reservation', ends: 'emptied' },
  scopedue: { holds: 'ZSET: hashes of scopes, by a time not later than their earliest deadline', ends: 'emptied' },
  rate: {
    holds: 'STRING of a rate rule and a caller: how many tokens were missing in its bucket, and when',
    ends: 'ttl',
  },
  connectdue: {
    holds: 'ZSET: deadline, client hash and id of the commands that were never queued, by connect deadline',
    ends: 'emptied',
  },

  stream: {
    holds: 'STREAM of a user and suffix: messages in blocks (see lib-history-blocks in history-rows.lua)',
    ends: 'ttl',
  },
  streamheads: { holds: 'HASH of a user: how far its streams have come (see lib-history in history.lua)', ends: 'ttl' },
  streams: { holds: 'ZSET of a user, by name: suffixes', ends: 'emptied' },
  streamage: { holds: 'ZSET of a user: suffix NUL hash, in the order last written', ends: 'emptied' },
  streamusers: { holds: 'ZSET by name: user NUL hash, of users with a stream', ends: 'emptied' },
  streamgone: { holds: 'ZSET: user NUL suffix NUL their hashes, by when the stream is forgotten', ends: 'emptied' },
  cmdrows: { holds: 'HASH of a user and span: command -> places of its first messages in it', ends: 'ttl' },
  cmdmore: {
    holds: 'ZSET of a user and command, by name: time NUL suffix NUL seq of its further messages',
    ends: 'ttl',
  },
  rowspans: { holds: 'ZSET: user hash NUL span of cmdrows, by when it is forgotten', ends: 'emptied' },
  historyover: { holds: 'ZSET: user NUL hash, by bytes of history, of users over their guarantee', ends: 'emptied' },
  evicted: {
    holds: 'ZSET: user, by the time of the newest message of a stream that was removed to make room',
    ends: 'emptied',
  },

  mark: { holds: 'STRING of a message: it was ingested', ends: 'ttl' },
  markorder: { holds: 'LIST of a user and span: its marks, in the order in which they were set', ends: 'ttl' },
  markoldest: { holds: 'ZSET: user NUL hash, by a time not later than its oldest in `markorder`', ends: 'emptied' },
  markover: { holds: 'ZSET: user NUL hash, by marks, of users over their guarantee', ends: 'emptied' },
  seen: { holds: 'HASH of a bucket of 10 s: unique, duplicates', ends: 'ttl' },

  signin: { holds: 'STRING of a ticket (by its hash): it was used to sign in', ends: 'ttl' },

  site: { holds: 'HASH of a site: its definition', ends: 'kept' },
  sites: { holds: 'ZSET by name: user NUL site', ends: 'emptied' },
  session: { holds: 'HASH of a session, with its grants (see lib-sites in sites.lua)', ends: 'ttl' },
  sessions: { holds: 'ZSET of a site, by name: session NUL its hash', ends: 'ttl' },
  sessionends: { holds: 'ZSET of a site: session NUL its hash, by when it is forgotten', ends: 'ttl' },
  token: { holds: 'STRING of a token: the hash of its session, and its grant', ends: 'ttl' },
  ticket: { holds: 'HASH of a ticket', ends: 'ttl' },
  tickets: { holds: 'ZSET of a session: tickets not redeemed, by expiry', ends: 'ttl' },
  redeemed: { holds: 'ZSET of a session: redeemed tickets, in the order last redeemed', ends: 'ttl' },

  audit: { holds: 'STREAM: rows of the audit, each by its number', ends: 'kept' },
  audithead: { holds: 'HASH: number and MAC of the newest row of the audit', ends: 'kept' },
  auditacts: { holds: 'ZSET: numbers of the rows of acts', ends: 'kept' },
  auditof: { holds: 'ZSET of a user: numbers of the rows of acts that concern it', ends: 'emptied' },
  auditends: { holds: 'ZSET: number of an act and of the row of its outcome, by the first', ends: 'kept' },
  auditrate: { holds: 'ZSET of an administrator and action: its latest acts, by their time', ends: 'ttl' },

  payload: { holds: 'STRING: the expiry and the text of a payload too large for history', ends: 'ttl' },
  payloads: { holds: 'ZSET: name and bytes of payloads, by expiry', ends: 'emptied' },
  payloadbytes: { holds: 'STRING: bytes of all payloads', ends: 'emptied' },
  bus: { holds: 'channel: live events for every node', ends: 'ttl' },
  hint: { holds: 'channel of a command: its record changed', ends: 'ttl' },
} as const satisfies Record<string, { readonly holds: string; readonly ends: 'ttl' | 'emptied' | 'node' | 'kept' }>;

export type KeyKind = keyof typeof KINDS;

/** The number of slots in a Redis Cluster. */
const SLOTS = 16_384;

/**
 * Returns the tags of a namespace's partitions. The slots are divided into as many equal ranges as there are
 * partitions, and the slot of the p-th tag is in the p-th range. So masters with equally many slots have equally many
 * partitions. Every process computes the same tags.
 */
export function tagsOf(namespace: string, partitions: number): readonly string[] {
  return Array.from({ length: partitions }, (_, p) => {
    for (let salt = 0; ; salt++) {
      const tag = `{cb:${namespace}:${p}.${salt}}`;
      if (partitions === 1 || Math.floor((calculateSlot(tag) * partitions) / SLOTS) === p) return tag;
    }
  });
}

/**
 * Returns the namespace of the data that owners of partitions store. Its keys and channels have the same prefix as
 * those of the deployment.
 */
export function ownedNamespace(namespace: string): string {
  return `${namespace}:owned`;
}

/** Returns the key of the namespace's fixed settings, which has the same prefix as the keys of the partitions. */
export function rootOf(namespace: string): string {
  return keyOf(`{cb:${namespace}:root}`, 'meta');
}

/**
 * Returns the name of a key. `hash`: a hash that `hashOf` made, or a text that no user chose, such as the id of a node.
 */
export function keyOf(tag: string, kind: KeyKind, hash?: string): string {
  return hash === undefined ? `${tag}:${kind}` : `${tag}:${kind}:${hash}`;
}

/** The most names in the cache. */
const KEPT_NAMES = 10_000;

type NameNode = { readonly name: string; parts: Map<string, NameNode> | null };

/**
 * A cache of the names of a partition's keys. An act names about twenty keys, most of which earlier acts have named,
 * and a look-up by parts costs less than joining and hashing them.
 */
export class KeyNames {
  readonly #tag: string;
  #root: NameNode;
  #size = 0;

  constructor(tag: string) {
    this.#tag = tag;
    this.#root = { name: tag, parts: null };
  }

  /** Returns the name of a key. `part` and `more` follow its kind, for example the ids of a user and a client. */
  of(kind: KeyKind, part?: string, more?: string): string {
    let named = this.#next(this.#root, kind);
    if (part !== undefined) named = this.#next(named, part);
    return (more === undefined ? named : this.#next(named, more)).name;
  }

  #next(from: NameNode, part: string): NameNode {
    const known = from.parts?.get(part);
    if (known) return known;
    if (this.#size++ >= KEPT_NAMES) {
      this.#root = { name: this.#tag, parts: null };
      this.#size = 0;
    }
    const made = { name: `${from.name}:${part}`, parts: null };
    (from.parts ??= new Map()).set(part, made);
    return made;
  }
}

/**
 * Computes the hash of several texts for the name of a key: the first 22 characters (132 bits) of their SHA-256 in
 * base64url. Each text is preceded by its length, so that different lists of texts never give the same bytes.
 */
export function hashOf(sha256: (text: string) => string, ...texts: readonly string[]): string {
  return sha256(texts.map((text) => `${text.length}:${text}`).join('')).slice(0, 22);
}

/** Returns the partition that a hash belongs to. It depends only on the hash and on `partitions`. */
export function partitionOf(scopeHash: string, partitions: number): number {
  return calculateSlot(scopeHash) % partitions;
}
