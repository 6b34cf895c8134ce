/** A workload on the stores of relays: commands are admitted, and cancelled. */
import type { Backend } from '../../src/core/backend.ts';
import type { Command } from '../../src/core/commands/command.ts';
import type { AdmitRequest } from '../../src/core/commands/command-store.ts';
import { commandKeyText, type CommandKey } from '../../src/core/ids.ts';
import { toJson } from '../../src/core/json.ts';
import { pick } from '../lib/random.ts';
import {
  noteAnswer,
  noteRefusal,
  requestAt,
  unexplained,
  type Claim,
  type Effect,
  type Operation,
} from './linearize.ts';
import { readRecord, viewOf } from './readers.ts';
import { codeOf, onRecord, type OpenRelay, type Relays } from './relays.ts';
import { HEAL_MS, type Workload } from './world.ts';

const USERS = Array.from({ length: 8 }, (_, n) => `user-${n}`);
/** How long a command waits for its client, which never comes: longer than any run. In milliseconds. */
const CONNECT_MS = 3_000_000;
/** How many acts repeat an admission of one of the last commands, as a caller does that had no answer. */
const AGAIN = 0.08;
/** How many acts admit many large commands in one turn, how many, and how long their params are. */
const MANY = 0.004;
const COMMANDS = 26;
const PARAMS_CHARS = 15_000;
/** One command in so many has an id that the relay has made. */
const UNCHOSEN = 5;
/** The codes of refusals that changed nothing. */
const REFUSALS: ReadonlySet<string> = new Set(['store_full', 'share_exceeded']);
/** How many acts also read a record, and among how many of the last commands. */
const READ = 0.5;
const READ_AMONG = 20;
/** How long a reader waits before it asks again, in milliseconds. */
const AGAIN_MS = 100;
/** How long an act may take while nothing is wrong, in milliseconds. */
const CALM_MS = 1_500;

/** What the workload knows of a command. `asked`: an act was sent. `acknowledged`: its answer has left the process. */
type Known = {
  readonly key: CommandKey;
  /** Whether a caller chose its id, so that it can be admitted again. */
  readonly chosenId: boolean;
  readonly params: AdmitRequest['params'];
  admitted: 'asked' | 'acknowledged';
  cancelled: 'no' | 'asked' | 'acknowledged';
  /** When its admission was asked for, in milliseconds of the simulation. */
  readonly askedAt: number;
  /** When it was admitted and cancelled, in milliseconds of the simulation: from the request to the acknowledgement. */
  readonly times: [from: number, to: number][];
  /** What was asked and answered about it. */
  readonly history: Operation[];
};

/** What the answers to acts claim, by their kinds. Others claim nothing. */
const CLAIMS: Readonly<Record<string, Claim>> = {
  admitted: { kind: 'stage', stage: 'waiting' },
  settled: { kind: 'receipt', state: 'cancelled' },
  unchanged: { kind: 'receipt', state: 'too_late' },
  unknown: { kind: 'receipt', state: 'not_found' },
};

export class StoreCommands implements Workload {
  readonly #relays: Relays;
  readonly #commands = new Map<string, Known>();
  /** The relays that have not answered an act, once for each. */
  readonly #asked = new Set<{ readonly relay: OpenRelay }>();
  #admissions = 0;
  readonly broken: string[] = [];

  constructor(relays: Relays) {
    this.#relays = relays;
  }

  get acknowledged(): number {
    return [...this.#commands.values()].filter(({ admitted }) => admitted === 'acknowledged').length;
  }

  get open(): number {
    return this.#asked
      .values()
      .filter(({ relay }) => !relay.process.isDead)
      .toArray().length;
  }

  onOpened(): void {
    // The acts use the backends alone.
  }

  onGone(): void {
    // What it was asked is never answered.
  }

  finish(): void {
    // No act waits for another.
  }

  isDone(): boolean {
    return true;
  }

  get #random(): () => number {
    return this.#relays.simulation.random;
  }

  act(): void {
    const { living } = this.#relays;
    if (living.length === 0) return;
    const relay = pick(this.#random, living);
    if (this.#random() < READ) this.#readOne();
    const open = [...this.#commands.values()].filter(
      ({ admitted, cancelled }) => admitted === 'acknowledged' && cancelled === 'no',
    );
    if (this.#random() < MANY) for (let n = 0; n < COMMANDS; n++) this.#admit(relay, PARAMS_CHARS);
    const kind = this.#random();
    if (open.length > 0 && kind < 0.4) this.#cancel(relay, pick(this.#random, open));
    else if (kind > 1 - AGAIN) this.#admitAgain(relay);
    else this.#admit(relay, 0);
  }

  /** Another caller admits one of the last commands, at any relay: it waits for the same one. */
  #admitAgain(relay: OpenRelay): void {
    const last = [...this.#commands.values()].slice(-READ_AMONG).filter(({ chosenId }) => chosenId);
    if (last.length > 0) this.#sendAdmission(relay, pick(this.#random, last));
  }

  /** Admits a new command, with params of about this length. */
  #admit(relay: OpenRelay, chars: number): void {
    const key = { userId: pick(this.#random, USERS), clientId: 'tab', commandId: `c${this.#commands.size}` };
    const { now: askedAt } = this.#relays.simulation;
    const chosenId = this.#commands.size % UNCHOSEN > 0;
    const params = toJson({ n: 1, text: 'x'.repeat(chars) });
    const known: Known = {
      ...{ key, chosenId, params, admitted: 'asked', cancelled: 'no', askedAt, times: [], history: [] },
    };
    this.#commands.set(commandKeyText(key), known);
    this.#sendAdmission(relay, known);
  }

  #sendAdmission(relay: OpenRelay, known: Known): void {
    const request = admission(known, relay.process.name, `rpc-${this.#admissions++}`);
    this.#send(relay, known, { what: 'admit', may: { kind: 'admit' } }, async ({ commands }) => {
      const result = await commands.admit(request);
      const claim = result.kind === 'attached' ? ({ kind: 'read', view: viewOf(result.command) } as const) : undefined;
      return { kind: result.kind, claim };
    }).then(
      (kind) => {
        if (kind === 'admitted' || kind === 'attached') known.admitted = 'acknowledged';
      },
      () => undefined,
    );
  }

  #cancel(relay: OpenRelay, known: Known): void {
    known.cancelled = 'asked';
    this.#send(relay, known, { what: 'cancel', may: { kind: 'cancel' } }, async ({ commands }) => {
      const { kind } = await commands.settle(known.key, { kind: 'cancel', reason: null, by: 'test' });
      return { kind };
    }).then(
      (kind) => {
        if (kind === 'settled' || kind === 'unchanged') known.cancelled = 'acknowledged';
        else if (kind !== null && !this.#mayBeLost(known))
          this.broken.push(`${commandKeyText(known.key)} was acknowledged, and its cancellation found: ${kind}`);
      },
      () => undefined,
    );
  }

  /** Resolves with an answer once it has left its process; null: it never did. */
  async #send(
    relay: OpenRelay,
    known: Known,
    { what: act, may }: { readonly what: string; readonly may: Effect },
    run: (backend: Backend) => Promise<{ readonly kind: string; readonly claim?: Claim | undefined }>,
  ): Promise<string | null> {
    const { process, backend } = relay;
    const { key, history } = known;
    const what = `${act} ${key.commandId}`;
    this.#relays.trace(`${process.name} ${what}`);
    const began = this.#relays.simulation.now;
    const request = requestAt(began, may);
    history.push(request);
    const asked = { relay };
    this.#asked.add(asked);
    try {
      const { kind, claim = CLAIMS[kind] } = await run(backend);
      this.#relays.count(`${act}: ${kind}`);
      this.#relays.trace(`${process.name} ${what}: ${kind}`);
      await new Promise<void>((leave) => onRecord(relay, leave));
      this.#relays.trace(`${process.name} ${what}: ${kind}, acknowledged`);
      this.#noteTime(began);
      known.times.push([began, this.#relays.simulation.now]);
      if (process.isDead) return null;
      if (claim) noteAnswer(request, this.#relays.simulation.now, claim);
      return kind;
    } catch (error) {
      const code = codeOf(error);
      this.#relays.count(`${act}: ${code}`);
      this.#relays.trace(`${process.name} ${what}: ${code}`);
      if (!REFUSALS.has(code)) return null;
      // A relay that may have lost the partition knows nothing of the command: its refusal does not leave.
      await new Promise<void>((leave) => onRecord(relay, leave));
      if (!process.isDead) noteRefusal(request, this.#relays.simulation.now);
      return null;
    } finally {
      this.#asked.delete(asked);
    }
  }

  /** Reads the record of one of the last commands at any relay. */
  #readOne(): void {
    const { living } = this.#relays;
    const last = [...this.#commands.values()].slice(-READ_AMONG);
    if (last.length === 0) return;
    const { key, history } = pick(this.#random, last);
    readRecord(this.#relays, pick(this.#random, living), key, history);
  }

  #mayBeLost({ times }: Known): boolean {
    return times.some(([from, to]) => this.#relays.mayBeLost(from, to));
  }

  /** Judges how long an act has taken that began after everything had healed, and before the next fault. */
  #noteTime(began: number): void {
    const took = this.#relays.simulation.now - began;
    if (began > this.#relays.calmFrom && took > CALM_MS)
      this.broken.push(`an act of ${began} took ${took} ms, although nothing was wrong`);
  }

  /** Compares what was acknowledged with what each process reads. */
  async judge(): Promise<readonly string[]> {
    const broken: string[] = [];
    const { simulation } = this.#relays;
    const readers = [...this.#relays.living];
    for (const relay of readers) {
      // What is acknowledged after the question may be missing in its answer.
      const all = [...this.#commands.values()].map((known) => ({ ...known }));
      let found: readonly (Command | null)[] | null = null;
      this.#relays.trace(`${relay.process.name} reads`);
      void this.#read(relay, all).then((commands) => (found = commands));
      await simulation.run(HEAL_MS, () => found !== null || relay.process.isDead);
      if (found === null) {
        // It may learn only now that a sync of before has failed, and end. Then the next one reads.
        const next = (): readonly OpenRelay[] => this.#relays.living.filter((one) => !readers.includes(one));
        if (relay.process.isDead && (await simulation.run(HEAL_MS, () => next().length > 0))) readers.push(...next());
        else broken.push(`${relay.process.name} does not read`);
        continue;
      }
      all.forEach((known, i) =>
        broken.push(...this.#faultsOf(relay.process.name, known, (found as readonly (Command | null)[])[i] ?? null)),
      );
    }
    for (const { askedAt, history, key } of this.#commands.values()) {
      const unlike = this.#relays.mayBeLost(askedAt, Infinity) ? null : unexplained(history);
      if (unlike !== null) broken.push(`${key.userId} ${key.commandId}: ${unlike}`);
    }
    return broken;
  }

  /**
   * Reads commands, as a caller gets them: what is told has left the process. Asks again if its connection is closed, or
   * if the relay has lost a partition meanwhile.
   */
  async #read(relay: OpenRelay, all: readonly Known[]): Promise<readonly (Command | null)[]> {
    const found = await this.#found(relay, all);
    const hasLeft = await new Promise<boolean>((leave) =>
      onRecord(relay, () => leave(true), { destroy: () => leave(false) }),
    );
    if (found && hasLeft) return found;
    await new Promise<void>((next) => this.#relays.simulation.after(AGAIN_MS, 'asks again', next));
    return this.#read(relay, all);
  }

  async #found({ backend }: OpenRelay, all: readonly Known[]): Promise<readonly (Command | null)[] | null> {
    try {
      return await backend.commands.get(all.map(({ key }) => key));
    } catch (error) {
      if (codeOf(error) !== 'store_unavailable') throw error;
      return null;
    }
  }

  /** Compares what was acknowledged with what a process reads. */
  #faultsOf(reader: string, known: Known, found: Command | null): readonly string[] {
    const { key, admitted, cancelled } = known;
    if (this.#mayBeLost(known)) return [];
    const name = `${key.userId} ${key.commandId} at ${reader}`;
    if (!found) return admitted === 'acknowledged' ? [`${name}: acknowledged, and lost`] : [];
    const isEnded = found.stage === 'terminal';
    if (cancelled === 'acknowledged' && !isEnded) return [`${name}: its end was acknowledged, and lost`];
    const isAsked = this.#commands.get(commandKeyText(key))?.cancelled !== 'no';
    const isLost = found.reason === 'store_lost' || found.error?.code === 'store_lost';
    if (isLost && this.#relays.mayBeGivenUp(known.askedAt)) return [];
    return isEnded && !isAsked ? [`${name}: ended as ${found.outcome}, and nobody asked for it`] : [];
  }
}

function admission({ key, chosenId, params }: Known, callerNodeId: string, rpcId: string): AdmitRequest {
  const caller = { kind: 'user', name: key.userId } as const;
  return {
    ...key,
    ...{ chosenId, action: 'open', digest: 'd1', scopeId: key.userId, scopeLimit: 10_000, memberLimit: null },
    ...{ namedInstanceId: null, clientType: null, params, kept: { payload: null, spill: null } },
    ...{ caller, traceId: 't1', parentSpanId: 's1', traceFlags: '01', traceState: null, callSpan: null },
    ...{ connectWithinMs: CONNECT_MS, respondWithinMs: 30_000 },
    waiter: { rpcId, caller, callerNodeId, waitFor: 'admitted', withinMs: null },
  };
}
