/**
 * A model of the Redis that relays agree through: the commands and scripts that owners use, in memory and in virtual
 * time. test/simulate compares it with a real Redis by random calls.
 */
import { createHash } from 'node:crypto';
import { OWNER_SCRIPTS } from '../../src/backends/owned/scripts.ts';

/** What a key has. */
type Value =
  | { readonly kind: 'text'; text: string }
  | { readonly kind: 'list'; readonly items: string[] }
  | { readonly kind: 'set'; readonly members: Set<string> }
  | Stream;
/** `last`: the number of the last entry that was ever appended. */
type Stream = { readonly kind: 'stream'; entries: (readonly [number: number, text: string])[]; last: number };
type Kept = { readonly value: Value; expiresAt: number };

/** A reply as Redis gives it: numbers, texts, null, and lists of those. */
export type Reply = number | string | null | readonly Reply[];

/**
 * A snapshot, and what it takes the place of. `batches`: those of the log so far, with their numbers; the snapshot
 * includes those up to `number`.
 */
export type Replaced = {
  readonly log: string;
  readonly before: readonly string[];
  readonly after: readonly string[];
  readonly batches: readonly (readonly [number: number, text: string])[];
  readonly number: number;
};

/** The error of a call, with the message that Redis would send. */
export class LogError extends Error {}

const NO_ROOM = "OOM command not allowed when used memory > 'maxmemory'.";
const NO_SCRIPT = 'NOSCRIPT No matching script.';

export class LogService {
  readonly #now: () => number;
  /** How far the wall clock of its machine is ahead, in milliseconds. */
  aheadMs = 0;
  #kept = new Map<string, Kept>();
  /** The scripts that are known, by their digests. */
  readonly #known = new Map<string, string>();
  /** Whether there is no memory for more. */
  isFull = false;
  /** Called when a snapshot takes the place of the one before it, and of batches: with all that was there before. */
  onSnapshot: (replaced: Replaced) => void = () => {};
  /** Called with each message that is published. */
  onPublish: (channel: string, text: string) => void = () => {};

  /** `now`: the time by which keys expire, in milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Returns what is kept now, as a replica has it that follows up to here. */
  copy(): ReadonlyMap<string, Kept> {
    return structuredClone(this.#kept);
  }

  /** Takes the state of a replica, as after a failover: it knows no script. */
  become(state: ReadonlyMap<string, Kept>): void {
    this.#kept = new Map(structuredClone(state));
    this.#known.clear();
  }

  /** The time of its machine, in milliseconds. Keys expire by elapsed time, as if all machines agreed. */
  time(): number {
    return this.#now() + this.aheadMs;
  }

  get(key: string): string | null {
    const value = this.#read(key, 'text');
    return value?.text ?? null;
  }

  mget(keys: readonly string[]): readonly (string | null)[] {
    return keys.map((key) => this.get(key));
  }

  exists(key: string): number {
    return this.#find(key) ? 1 : 0;
  }

  smembers(key: string): readonly string[] {
    return [...(this.#read(key, 'set')?.members ?? [])];
  }

  srem(key: string, members: readonly string[]): number {
    const set = this.#read(key, 'set');
    const removed = members.filter((member) => set?.members.delete(member)).length;
    if (set?.members.size === 0) this.#kept.delete(key);
    return removed;
  }

  del(keys: readonly string[]): number {
    return keys.filter((key) => this.#find(key) && this.#kept.delete(key)).length;
  }

  lindex(key: string, at: number): string | null {
    return this.#read(key, 'list')?.items[at] ?? null;
  }

  /** Returns at most `most` entries of a stream from this number on. */
  xrange(key: string, from: number, most: number): readonly (readonly [number, string])[] {
    return (this.#read(key, 'stream')?.entries ?? []).filter(([number]) => number >= from).slice(0, most);
  }

  publish(channel: string, text: string): void {
    this.onPublish(channel, text);
  }

  /** Runs a script by its text, which is known from then on. Throws LogError. */
  eval(text: string, keys: readonly string[], args: readonly string[]): Reply {
    this.#known.set(createHash('sha1').update(text).digest('hex'), text);
    return this.#run(text, keys, args);
  }

  /** Runs a script that is known, by its SHA-1 digest. */
  evalKnown(digest: string, keys: readonly string[], args: readonly string[]): Reply {
    const text = this.#known.get(digest);
    if (text === undefined) throw new LogError(NO_SCRIPT);
    return this.#run(text, keys, args);
  }

  #run(text: string, keys: readonly string[], args: readonly string[]): Reply {
    switch (text) {
      case OWNER_SCRIPTS.turn:
        return this.#turn(keys, args);
      case OWNER_SCRIPTS.setFence:
        return this.#setFence(keys, args);
      case OWNER_SCRIPTS.commitSnapshot:
        return this.#commit(keys, args) ? 1 : 0;
      case OWNER_SCRIPTS.beginAnew:
        return this.#beginAnew(keys, args);
      case OWNER_SCRIPTS.renew:
        return this.#renew(keys, args);
      case OWNER_SCRIPTS.addPiece:
        return this.#addPiece(keys, args);
      case OWNER_SCRIPTS.dropPieces:
        return this.#dropPieces(at(keys, 0));
      case OWNER_SCRIPTS.mayGrow:
        if (this.isFull) throw new LogError(NO_ROOM);
        return 1;
      default:
        throw new LogError('the model has no such script');
    }
  }

  #turn(keys: readonly string[], args: readonly string[]): Reply {
    const [appends, checks] = [Number(args[1]), Number(args[2])];
    const map = this.get(at(keys, 0));
    if (map !== args[0]) return [0, map];
    for (let i = 1; i <= appends + checks; i++) {
      const isAppend = i <= appends;
      const found = this.get(at(keys, isAppend ? 2 * i - 1 : appends + i));
      const expected = args[isAppend ? 4 * i - 1 : 2 + 3 * appends + i];
      if (found !== expected) return [i, found];
    }
    for (let i = 1; i <= appends; i++) {
      const [, after = '', number = '', text = ''] = args.slice(4 * i - 1, 4 * i + 3);
      this.#append(at(keys, 2 * i), Number(number), text);
      this.#set(at(keys, 2 * i - 1), after);
    }
    for (let i = 3 + 4 * appends + checks; i + 1 < args.length; i += 2) this.publish(at(args, i), at(args, i + 1));
    return 0;
  }

  #setFence(keys: readonly string[], args: readonly string[]): Reply {
    const [fence, map] = [at(keys, 0), at(keys, 1)];
    const found = this.get(fence) ?? '';
    if (found === args[1]) return 1;
    if (found !== args[0]) return 0;
    if (this.get(map) === null) this.#set(map, at(args, 2));
    if (this.get(map) !== args[2]) return 0;
    const processes = keys.slice(2);
    if (processes.some((key, i) => (this.exists(key) === 1) !== i < Number(args[3]))) return 0;
    this.#set(fence, at(args, 1));
    return 1;
  }

  /** Whether the partition has the owner that the call names. */
  #isOwned(keys: readonly string[], args: readonly string[]): boolean {
    return this.get(at(keys, 0))?.startsWith(at(args, 0)) ?? false;
  }

  #commit(keys: readonly string[], args: readonly string[]): boolean {
    if (!this.#isOwned(keys, args)) return false;
    const number = Number(this.get(at(keys, 0))?.slice(at(args, 0).length));
    return number >= Number(args[1]) && this.#replace(keys, args);
  }

  #replace(keys: readonly string[], args: readonly string[]): boolean {
    const [, snapshotAt, log, pieces, before] = keys;
    const kept = this.#find(pieces ?? '');
    if (kept?.expiresAt === undefined || kept.expiresAt === Infinity) return false;
    kept.expiresAt = Infinity;
    const piecesOf = (key: string | undefined): readonly string[] => [...(this.#read(key ?? '', 'list')?.items ?? [])];
    const batches = this.#read(log ?? '', 'stream')?.entries ?? [];
    const texts = { before: piecesOf(before), after: piecesOf(pieces), batches };
    this.onSnapshot({ log: log ?? '', ...texts, number: Number(args[1]) });
    this.#set(snapshotAt ?? '', at(args, 2));
    if (before !== undefined && before !== pieces) this.#kept.delete(before);
    const stream = this.#read(log ?? '', 'stream');
    if (stream) stream.entries = stream.entries.filter(([number]) => number > Number(args[1]));
    return true;
  }

  #beginAnew(keys: readonly string[], args: readonly string[]): Reply {
    if (!this.#isOwned(keys, args) || !this.#replace(keys, args)) return 0;
    for (let i = 4; i + 1 < args.length; i += 2) this.#append(at(keys, 2), Number(args[i]), at(args, i + 1));
    this.#set(at(keys, 0), at(args, 3));
    return 1;
  }

  #renew(keys: readonly string[], args: readonly string[]): Reply {
    const [live, processes, report] = keys;
    const before = this.get(live ?? '');
    this.#set(live ?? '', at(args, 0), this.#now() + Number(args[1]));
    if (processes === undefined) return [before];
    if (report !== undefined) this.#set(report, at(args, 4), this.#now() + Number(args[5]));
    const known = this.#make(processes, () => ({ kind: 'set', members: new Set<string>() }));
    known.members.add(at(args, 2));
    const found: (string | null)[] = [before];
    for (const process of [...known.members]) {
      const text = this.get(at(args, 3) + process);
      if (text === null) known.members.delete(process);
      else found.push(process, text);
    }
    return found;
  }

  #addPiece(keys: readonly string[], args: readonly string[]): Reply {
    const key = at(keys, 0);
    this.#make(key, () => ({ kind: 'list', items: [] as string[] })).items.push(at(args, 0));
    const kept = this.#find(key);
    if (kept) kept.expiresAt = this.#now() + Number(args[1]);
    return null;
  }

  #dropPieces(key: string): Reply {
    const kept = this.#find(key);
    if (kept && kept.expiresAt !== Infinity) this.#kept.delete(key);
    return null;
  }

  #append(key: string, number: number, text: string): void {
    const stream = this.#make(key, (): Stream => ({ kind: 'stream', entries: [], last: 0 }));
    if (number <= stream.last)
      throw new LogError('ERR The ID specified in XADD is equal or smaller than the target stream top item');
    stream.entries.push([number, text]);
    stream.last = number;
  }

  #set(key: string, text: string, expiresAt = Infinity): void {
    this.#kept.set(key, { value: { kind: 'text', text }, expiresAt });
  }

  #find(key: string): Kept | undefined {
    const kept = this.#kept.get(key);
    if (kept && kept.expiresAt <= this.#now()) this.#kept.delete(key);
    return this.#kept.get(key);
  }

  #read<K extends Value['kind']>(key: string, kind: K): Extract<Value, { kind: K }> | undefined {
    const value = this.#find(key)?.value;
    if (value && value.kind !== kind) throw new LogError('WRONGTYPE Operation against a key holding the wrong kind');
    return value as Extract<Value, { kind: K }> | undefined;
  }

  #make<V extends Value>(key: string, make: () => V): V {
    const value = this.#read(key, make().kind) as V | undefined;
    if (value) return value;
    const made = make();
    this.#kept.set(key, { value: made, expiresAt: Infinity });
    return made;
  }
}

function at(list: readonly string[], index: number): string {
  return list[index] ?? '';
}
