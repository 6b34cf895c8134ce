import { hash, randomBytes } from 'node:crypto';
import { NO_DIGEST, type CommandMark, type ExecutionEvidence, type Outcome } from '../../core/delivery/command.ts';
import { CODES, type Code } from '../../core/errors.ts';
import type { CommandKey } from '../../core/ids.ts';
import { MarkTable } from './commands-marks-table.ts';

/**
 * How many generations a window is divided into. A mark lives for the window; its bytes are kept for one generation
 * more.
 */
const GENERATIONS = 12;

/** The marks of commands that ended within one twelfth of the window, and how many of them each owner has. */
type Generation<O> = { readonly number: number; readonly table: MarkTable; readonly owners: Map<O, number> };

export type MarksOptions<O> = {
  /** In milliseconds, at most a day. */
  readonly windowMs: number;
  /** Called when a generation is dropped, with how many marks it counted for this owner. */
  readonly onDropped: (owner: O, count: number) => void;
};

/**
 * Marks of ended commands, until their window is over: at most 60 bytes each. Whole generations are dropped, so no
 * search for expired marks is needed. Keys are hashed with a secret of this process, so that no requester can choose
 * ids that collide.
 */
export class CommandMarks<O> {
  readonly #options: MarksOptions<O>;
  readonly #secret = randomBytes(16).toString('base64url');
  readonly #length: number;
  /** Oldest first; at most GENERATIONS + 1. */
  #generations: Generation<O>[] = [];

  constructor(options: MarksOptions<O>) {
    this.#options = options;
    this.#length = Math.ceil(options.windowMs / GENERATIONS);
  }

  /** Number of marks, including expired ones whose generation is not dropped yet. */
  get size(): number {
    return this.#generations.reduce((sum, { table }) => sum + table.size, 0);
  }

  /** Bytes of the packed marks. */
  get bytes(): number {
    return this.#generations.reduce((sum, { table }) => sum + table.bytes, 0);
  }

  /** Adds a mark. The key must not have a live mark. `digest`: the digest of the invocation. */
  add(key: CommandKey, digest: string, { mark, owner }: { readonly mark: CommandMark; readonly owner: O }): void {
    const generation = this.#generationOf(mark.endedAt);
    const end = pack(mark, mark.endedAt - generation.number * this.#length);
    const code = mark.errorCode === null ? 0 : CODE_NAMES.indexOf(mark.errorCode) + 1;
    generation.table.add({ key: this.#hash(key), digest: digestWords(digest), end, code });
    generation.owners.set(owner, (generation.owners.get(owner) ?? 0) + 1);
  }

  /** Makes `onDropped` be called for the owner once the window of this end is over, without counting a mark. */
  note(owner: O, endedAt: number): void {
    const { owners } = this.#generationOf(endedAt);
    owners.set(owner, owners.get(owner) ?? 0);
  }

  /** `conflict`: the mark has a different digest from the one given. Null: there is no live mark. */
  find(key: CommandKey, digest: string | null, now: number): CommandMark | 'conflict' | null {
    if (this.#generations.length === 0) return null;
    const hashed = this.#hash(key);
    for (let at = this.#generations.length - 1; at >= 0; at--) {
      const generation = this.#generations[at];
      const found = generation?.table.find(hashed);
      if (!generation || !found) continue;
      const mark = unpack(found.end, found.code, generation.number * this.#length);
      if (mark.endedAt + this.#options.windowMs <= now) continue;
      return digest === null || equal(found.digest, digestWords(digest)) ? mark : 'conflict';
    }
    return null;
  }

  /** Drops the generations whose marks have all expired. */
  expire(now: number): void {
    for (let [oldest] = this.#generations; oldest && this.#isOver(oldest, now); [oldest] = this.#generations) {
      this.#generations.shift();
      for (const [owner, count] of oldest.owners) this.#options.onDropped(owner, count);
    }
  }

  #isOver({ number }: Generation<O>, now: number): boolean {
    return (number + 1) * this.#length + this.#options.windowMs <= now;
  }

  #generationOf(endedAt: number): Generation<O> {
    const number = Math.floor(endedAt / this.#length);
    const known = this.#generations.findLast((generation) => generation.number === number);
    if (known) return known;
    const made: Generation<O> = { number, table: new MarkTable(), owners: new Map() };
    this.#generations = [...this.#generations, made].sort((a, b) => a.number - b.number);
    return made;
  }

  #hash({ userId, clientId, commandId }: CommandKey): Uint32Array {
    return wordsOf(`${this.#secret}\0${userId}\0${clientId}\0${commandId}`);
  }
}

/** The words that stand for a digest in a mark; NO_DIGEST, which no invocation repeats, is not hashed. */
function digestWords(digest: string): Uint32Array {
  return digest === NO_DIGEST ? NO_WORDS : wordsOf(digest);
}

const NO_WORDS = new Uint32Array(4);

/** The first 128 bits of the text's SHA-256. */
function wordsOf(text: string): Uint32Array {
  const bytes = hash('sha256', text, 'buffer');
  return Uint32Array.of(bytes.readUInt32LE(0), bytes.readUInt32LE(4), bytes.readUInt32LE(8), bytes.readUInt32LE(12));
}

const CODE_NAMES = Object.keys(CODES) as readonly Code[];
const OUTCOMES: readonly Outcome[] = ['completed', 'failed', 'cancelled', 'expired', 'outcome_unknown'];
const EXECUTIONS: readonly ExecutionEvidence[] = [
  'not_written',
  'refused_by_client',
  'may_have_run',
  'reported_by_client',
];
/** Bits of the time within a generation; a twelfth of a day in milliseconds fits. */
const TIME_BITS = 24;

/**
 * From the lowest bit: the time in 24 bits, the outcome in 3, the execution in 2, and whether there was a result in 1.
 */
function pack({ outcome, execution, resultExpired }: CommandMark, time: number): number {
  const words = OUTCOMES.indexOf(outcome) + EXECUTIONS.indexOf(execution) * 8 + (resultExpired ? 32 : 0);
  return words * 2 ** TIME_BITS + time;
}

function unpack(end: number, code: number, from: number): CommandMark {
  const words = end >>> TIME_BITS;
  return {
    outcome: OUTCOMES[words & 7] ?? 'outcome_unknown',
    execution: EXECUTIONS[(words >> 3) & 3] ?? 'may_have_run',
    errorCode: CODE_NAMES[code - 1] ?? null,
    endedAt: from + (end & (2 ** TIME_BITS - 1)),
    resultExpired: (words & 32) !== 0,
  };
}

function equal(a: Uint32Array, b: Uint32Array): boolean {
  return a.every((word, i) => word === b[i]);
}
