/**
 * A workload of calls: callers invoke actions of clients through the cores of relays. Clients and callers have links of
 * their own, with delays, and go to another relay when theirs is gone.
 */
import type { UserPrincipal } from '../../src/core/auth/principal.ts';
import type { Command } from '../../src/core/commands/command.ts';
import type { ClientLink } from '../../src/core/commands/links.ts';
import type { LinkSession } from '../../src/core/commands/link-session.ts';
import type { Core } from '../../src/core/core.ts';
import { toJson } from '../../src/core/json.ts';
import { between, pick } from '../lib/random.ts';
import { codeOf, coreOf, onRecord, type OpenRelay, type Relay, type Relays } from './relays.ts';
import { HEAL_MS, type Workload } from './world.ts';

/** The users, each with one client. */
const USERS = ['user-0', 'user-1', 'user-2', 'user-3', 'user-4', 'user-5'] as const;
const CLIENT = 'desk';
const ACTION = 'work';
/** How long a call waits for its client, and for the answer, in milliseconds. */
const CONNECT_MS = 8_000;
const RESPOND_MS = 15_000;
/** How long a handler may run, and how long a client waits before it connects again, in milliseconds. */
const HANDLER_MS = 400;
const RECONNECT_MS = 1_000;
/** How long a message between a relay and a client or caller takes, in milliseconds. */
const DELAY_MS = 5;
/** How long a caller waits for its relay before it asks another one, in milliseconds: longer than the call may take. */
const ASK_AGAIN_MS = CONNECT_MS + RESPOND_MS + 20_000;

/** The end of a call that the store does not know: it may have run, or not. */
const LOST = 'store_lost';

/** One question of a caller. `recordedAt`: when what the relay decided was recorded, in milliseconds; null: it is not. */
type Ask = { isRefused: boolean; recordedAt: number | null };

/** A call as its caller knows it. `ran`: how often the handler of the client has begun. */
type Call = {
  readonly userId: string;
  readonly commandId: string;
  ran: number;
  /** The outcomes that callers were told. */
  readonly told: Set<string>;
  isOpen: boolean;
  readonly asks: Ask[];
  /** When callers were told outcomes. */
  readonly toldAt: number[];
};

export class Calls implements Workload {
  readonly #relays: Relays;
  readonly #calls = new Map<string, Call>();
  readonly #clients: readonly SimulatedClient[];
  readonly broken: string[] = [];

  constructor(relays: Relays) {
    this.#relays = relays;
    this.#clients = USERS.map((userId) => new SimulatedClient(relays, userId, (id) => this.#began(id)));
  }

  get acknowledged(): number {
    return [...this.#calls.values()].filter(({ told }) => told.size > 0).length;
  }

  async onOpened(relay: OpenRelay): Promise<void> {
    const core = coreOf(relay);
    await core.start();
    relay.core = core;
  }

  onGone(relay: Relay): void {
    for (const client of this.#clients) client.lost(relay);
  }

  act(): void {
    for (const client of this.#clients) client.connect();
    const userId = pick(this.#random, USERS);
    const commandId = `call-${this.#calls.size}`;
    const call: Call = { userId, commandId, ran: 0, told: new Set(), isOpen: true, asks: [], toldAt: [] };
    this.#calls.set(commandId, call);
    this.#ask(call);
    // Some links break for no reason of the relays.
    if (this.#random() < 0.01) pick(this.#random, this.#clients).breaks();
  }

  finish(): void {
    for (const client of this.#clients) client.connect();
  }

  isDone(): boolean {
    return [...this.#calls.values()].every(({ isOpen }) => !isOpen);
  }

  async judge(): Promise<readonly string[]> {
    const broken: string[] = [...(await this.#repeatAll())];
    for (const call of this.#calls.values()) {
      const { commandId, ran, told } = call;
      const [outcome] = told;
      if (this.#mayBeForgotten(call)) {
        this.#relays.count('call: may be forgotten');
        continue;
      }
      if (ran > 1) broken.push(`${commandId} ran ${ran} times`);
      if (told.size > 1) broken.push(`${commandId} was told as ${[...told].join(' and ')}`);
      if (outcome === 'completed' && ran !== 1) broken.push(`${commandId} completed, and ran ${ran} times`);
      if (outcome === 'expired' && ran > 0) broken.push(`${commandId} expired, and ran`);
      if (outcome !== undefined) this.#relays.count(`call: ${outcome}`);
    }
    return broken;
  }

  /** Repeats each answered call at every relay: each must tell the recorded outcome, and run nothing. */
  async #repeatAll(): Promise<readonly string[]> {
    const { simulation, living } = this.#relays;
    const broken: string[] = [];
    let open = 0;
    for (const relay of living)
      for (const call of this.#calls.values()) {
        // What an owner had not recorded when it lost the partition is not known any more: a repeat is a new call.
        if (!relay.core || call.told.size === 0 || call.told.has(LOST) || this.#mayBeForgotten(call)) continue;
        open++;
        invoke(relay.core, call).then(
          (outcome) =>
            onRecord(relay, () => {
              open--;
              call.told.add(outcome);
            }),
          (error: unknown) => {
            open--;
            broken.push(`${call.commandId} was repeated at ${relay.process.name}: ${codeOf(error)}`);
          },
        );
      }
    if (!(await simulation.run(HEAL_MS, () => open === 0))) broken.push(`${open} repeated calls were not answered`);
    return broken;
  }

  /** Whether its admission, or an end that was told, may be lost, so that it may run again, or end otherwise. */
  #mayBeForgotten({ asks, toldAt }: Call): boolean {
    const admitted = asks.find(({ isRefused, recordedAt }) => !isRefused && recordedAt !== null);
    const times = [...toldAt, ...(admitted?.recordedAt ? [admitted.recordedAt] : [])];
    return times.some((at) => this.#relays.mayBeLost(at));
  }

  get #random(): () => number {
    return this.#relays.simulation.random;
  }

  #began(commandId: string): void {
    const call = this.#calls.get(commandId);
    if (call) call.ran++;
  }

  /** Asks a relay, and another one if that does not answer: the id makes sure that the call runs once. */
  #ask(call: Call): void {
    const { simulation, living } = this.#relays;
    const ready = living.filter(({ core }) => core !== null);
    const again = (): void =>
      void simulation.after(between(this.#random, 100, 1_000), 'asks again', () => this.#ask(call));
    if (ready.length === 0) return again();
    const relay = pick(this.#random, ready);
    const { process, core } = relay;
    let isAnswered = false;
    const answer = (run: () => void): void => {
      if (isAnswered) return;
      isAnswered = true;
      run();
    };
    simulation.after(ASK_AGAIN_MS, 'asks another', () => answer(again));
    process.after(between(this.#random, 0, DELAY_MS), 'a call arrives', () => {
      const ask: Ask = { isRefused: false, recordedAt: null };
      call.asks.push(ask);
      invoke(core as Core, call).then(
        (outcome) => {
          ask.isRefused = outcome.startsWith('refused');
          onRecord(relay, () => {
            simulation.after(between(this.#random, 0, DELAY_MS), 'an answer arrives', () =>
              answer(() => {
                if (process.isDead) return again();
                this.#relays.trace(`${process.name} told ${call.commandId}: ${outcome}`);
                this.#told(call, outcome, again);
              }),
            );
          });
        },
        (error: unknown) => {
          ask.isRefused = true;
          this.#relays.count(`call: ${codeOf(error)}`);
          answer(again);
        },
      );
      onRecord(relay, () => (ask.recordedAt = simulation.now));
    });
  }

  #told(call: Call, outcome: string, again: () => void): void {
    // The wait has ended before the command.
    if (outcome.startsWith('pending')) return again();
    if (outcome.startsWith('refused')) {
      this.#relays.count(`call: ${outcome}`);
      // A refusal that may pass; any other one ends the call.
      if (/unavailable|draining|node_lost|rate/.test(outcome)) return again();
    } else {
      call.told.add(outcome);
      call.toldAt.push(this.#relays.simulation.now);
    }
    call.isOpen = false;
  }
}

async function invoke(core: Core, { userId, commandId }: Call): Promise<string> {
  const times = { connectWithinMs: CONNECT_MS, respondWithinMs: RESPOND_MS };
  const request = { userId, clientId: CLIENT, action: ACTION, params: null, commandId, ...times };
  const answer = await core.rpc.invoke(principalOf(userId), request);
  if (answer.kind !== 'outcome') return `${answer.kind} ${'code' in answer ? answer.code : ''}`;
  const { outcome, error } = answer.command;
  return error?.code === 'store_lost' ? LOST : (outcome ?? 'no outcome');
}

function principalOf(userId: string): UserPrincipal {
  return { kind: 'user', userId, scopes: new Set(['connect', 'invoke'] as const), expiresAt: null };
}

/** A client with one link at a time. It runs each command that arrives, once for each arrival, and reports its end. */
class SimulatedClient {
  readonly #relays: Relays;
  readonly #userId: string;
  readonly #began: (commandId: string) => void;
  #instance = 0;
  /** The link that is open, or being opened. */
  #link: { readonly relay: OpenRelay; session: LinkSession | null } | null = null;

  constructor(relays: Relays, userId: string, began: (commandId: string) => void) {
    this.#relays = relays;
    this.#userId = userId;
    this.#began = began;
  }

  /** Opens a link, unless there is one. */
  connect(): void {
    const ready = this.#relays.living.filter(({ core }) => core !== null);
    if (this.#link || ready.length === 0) return;
    const relay = pick(this.#random, ready);
    const link: { readonly relay: OpenRelay; session: LinkSession | null } = { relay, session: null };
    this.#link = link;
    const instanceId = `i${this.#instance}`;
    const ended = (): void => this.#ended(link);
    const socket: ClientLink = {
      sendCommand: (command) => onRecord(relay, () => this.#later(() => this.#run(link, command))),
      sendCancel() {},
      backlog: () => 0,
      close: (cause) => {
        void Promise.resolve(link.session?.closed(cause)).catch(() => undefined);
        onRecord(relay, () => this.#later(ended));
      },
    };
    const actions = [
      {
        name: ACTION,
        summary: null,
        description: null,
        version: null,
        checksArguments: null,
        schema: null,
        metadata: null,
      },
    ];
    const hello = { clientId: CLIENT, instanceId, clientType: 'browser', metadata: null, actions } as const;
    relay.process.after(between(this.#random, 0, DELAY_MS), 'a client connects', () => {
      (relay.core as Core).links.open(principalOf(this.#userId), hello, socket).then((session) => {
        link.session = session;
        if (this.#link === link) session.begin();
        else void session.closed('lost').catch(() => undefined);
      }, ended);
    });
  }

  /** The relay of the link is gone. */
  lost(relay: Relay): void {
    if (this.#link?.relay.process === relay.process) this.#ended(this.#link);
  }

  /** The link breaks. */
  breaks(): void {
    const link = this.#link;
    if (!link) return;
    const { relay, session } = link;
    relay.process.after(
      DELAY_MS,
      'a link breaks',
      () => void Promise.resolve(session?.closed('lost')).catch(() => undefined),
    );
    this.#ended(link);
  }

  #ended(link: { readonly relay: OpenRelay }): void {
    if (this.#link !== link) return;
    this.#link = null;
    // Most come back as the same run, and some were reloaded.
    if (this.#random() < 0.3) this.#instance++;
    this.#relays.simulation.after(between(this.#random, 1, RECONNECT_MS), 'a client connects again', () =>
      this.connect(),
    );
  }

  #run(link: { readonly relay: OpenRelay; readonly session: LinkSession | null }, { commandId }: Command): void {
    // What arrives over a link that the client has given up is not read.
    if (this.#link !== link) return;
    this.#began(commandId);
    const end = { kind: 'result', payload: toJson({ done: true }), error: null, refused: false } as const;
    this.#relays.simulation.after(between(this.#random, 0, HANDLER_MS), 'a handler ends', () => {
      link.relay.process.after(between(this.#random, 0, DELAY_MS), 'a result arrives', () => {
        void Promise.resolve(link.session?.end(commandId, end)).catch(() => undefined);
      });
    });
  }

  /** Runs something when what the relay has sent arrives. */
  #later(run: () => void): void {
    this.#relays.simulation.after(between(this.#random, 0, DELAY_MS), 'a frame arrives', run);
  }

  get #random(): () => number {
    return this.#relays.simulation.random;
  }
}
