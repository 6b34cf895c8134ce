/** Invokes the commands of a run at its rate, and asks again for ends that did not arrive. */
import {
  createHttpCaller,
  createLinkCaller,
  CallerError,
  type Caller,
  type Invocation,
} from '../../../src/clients/caller/index.ts';
import { signToken } from '../../../src/http/tokens.ts';
import { canaryOf, fillerOf, type Action, type Key } from '../log/events.ts';
import type { FaultLog } from '../log/log.ts';
import { between, pick, seeded } from '../../lib/random.ts';
import type { OwnerWatch } from './owner-watch.ts';
import { SECRET } from './relays.ts';

export type Load = {
  readonly log: FaultLog;
  readonly seed: number;
  readonly commands: number;
  readonly perSecond: number;
  readonly relays: readonly { readonly name: string; readonly url: string }[];
  readonly clients: readonly { readonly user: string; readonly client: string }[];
  /** The fraction of commands that a second caller invokes at the same time with the same id. */
  readonly doubled: number;
  /** The maximum duration of a handler, in milliseconds. */
  readonly workMs: number;
  /** How long a command may wait for its client to connect, in milliseconds. */
  readonly connectMs: number;
  /** The time limit for a client's answer, in milliseconds. */
  readonly respondMs: number;
  /** The number of characters of params and result in addition to their canary. */
  readonly bytes: number;
  /** Receives the calls in progress, and knows the owner of each user; null: owners do not matter. */
  readonly owners: OwnerWatch | null;
  /** Whether `again` will be called after `run`. */
  readonly again: boolean;
};

type Driver = AsyncDisposable & {
  /** Resolves when a caller has received the end of every command or has given up. */
  run(): Promise<void>;
  /** Asks all relays once more for the end of each command. */
  again(): Promise<void>;
  readonly begun: number;
  /** Returns a holder of a token, which has a link to each relay that it tries, and uses HTTP. */
  hold(token: TriedToken): TokenHolder;
};

export type TokenHolder = AsyncDisposable & {
  /** Invokes a command once, without repeating it. Resolves with whether the command ran. */
  tryOnce(relay: string, over: 'http' | 'link'): Promise<boolean>;
};

/** A token whose calls the run judges. `id`: the token's id. */
export type TriedToken = { readonly id: string; readonly text: string; readonly user: string };

/** The maximum number of unfinished commands. A relay that hangs must not get more load. */
const OPEN_MAX = 1_000;
/** The number of commands that are invoked again at the same time after the load. */
const AGAIN_AT_ONCE = 20;
/** The interval at which the driver starts the calls that are due, in milliseconds. */
const TICK_MS = 20;
/** The number of attempts after which a command without an answer is given up. */
const TRIES = 60;
/**
 * The pause after a refusal or a missing answer, in milliseconds. It doubles each time up to `most`, which is longer
 * than any pause that a refusal requests.
 */
const PAUSE_MS = { first: 250, most: 2_000 } as const;
/** The time limits of a call that is not repeated, in milliseconds. */
const TRIED_MS = { connectMs: 1_000, respondMs: 2_000 } as const;
/** Codes which prove that the request did not admit the command. Any other code proves nothing. */
const REFUSALS: ReadonlySet<string> = new Set([
  'not_connected',
  'instance_mismatch',
  'capacity_exceeded',
  'queue_full',
  'draining',
  'rate_limited',
  'command_conflict',
  'not_found',
  'store_full',
  'paused',
  'unauthenticated',
]);

/** Creates the driver of a run. It sends each request to a randomly chosen relay, over HTTP or over a link. */
export function createDriver(load: Load): Driver {
  const { commands, perSecond } = load;
  const random = seeded(load.seed);
  const callers = createCallers(load);
  const open = new Set<Promise<void>>();
  const all: Command[] = [];
  let begun = 0;
  let tries = 0;
  const begin = (): void => {
    const command = newCommand(load, random, `c${++begun}`);
    if (load.again) all.push(command);
    const one = drive(load, callers, command);
    open.add(one);
    void one.finally(() => open.delete(one));
  };
  return {
    get begun() {
      return begun;
    },
    async run() {
      const from = performance.now();
      while (begun < commands) {
        const due = Math.min(commands, Math.ceil(((performance.now() - from) / 1000) * perSecond));
        while (begun < due && open.size < OPEN_MAX) begin();
        await sleep(TICK_MS);
      }
      await Promise.all(open);
    },
    async again() {
      for (let from = 0; from < all.length; from += AGAIN_AT_ONCE) {
        const some = all.slice(from, from + AGAIN_AT_ONCE);
        const asked = some.flatMap((command) => load.relays.map(({ name }, n) => askingAnew(command, name, n)));
        await Promise.all(asked.map((once) => askOnce(load, callers, once)));
      }
    },
    hold(token) {
      const own = createCallers(load, () => token.text);
      const clients = load.clients.filter(({ user }) => user === token.user);
      const tried = { ...load, ...TRIED_MS, clients };
      return {
        async tryOnce(of, over) {
          const command = newCommand(tried, random, `t${++tries}`);
          const by = { caller: own.get(of, token.user, over), token: token.id };
          const once = { command, wait: `${command.key.command}.1`, how: 'invoke', of, by } as const;
          return (await askOnce(tried, own, once)) === 'ended';
        },
        [Symbol.asyncDispose]: () => own[Symbol.asyncDispose](),
      };
    },
    [Symbol.asyncDispose]: () => callers[Symbol.asyncDispose](),
  };
}

function honestToken(user: string): Promise<string> {
  return signToken({ secret: SECRET, user, scopes: ['invoke'], ttlSeconds: 86_400, now: Date.now() });
}

type Callers = AsyncDisposable & { get(relay: string, user: string, over: 'http' | 'link'): Caller };

/** `tokenOf`: returns the token of a user's callers. Default: an honest token of the user. */
function createCallers({ relays }: Load, tokenOf: (user: string) => string | Promise<string> = honestToken): Callers {
  const made = new Map<string, Caller>();
  const make = (name: string, user: string, over: 'http' | 'link'): Caller => {
    const url = relays.find((relay) => relay.name === name)?.url ?? '';
    const token = () => tokenOf(user);
    if (over === 'http') return createHttpCaller({ url, token, retries: 0 });
    return createLinkCaller({ url: `${url.replace('http', 'ws')}/connect`, token, random: () => Math.random() / 10 });
  };
  return {
    get(relay, user, over) {
      const name = `${relay} ${user} ${over}`;
      const caller = made.get(name) ?? make(relay, user, over);
      made.set(name, caller);
      return caller;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(Array.from(made.values(), (caller) => caller.close()));
    },
  };
}

type Command = {
  readonly key: Key;
  readonly action: Action;
  readonly workMs: number;
  readonly doubled: boolean;
  readonly random: () => number;
};

/** The fraction of commands with the action `rest`. */
const REST_SHARE = 0.25;

function newCommand({ clients, doubled, workMs }: Load, random: () => number, id: string): Command {
  const key = { ...pick(random, clients), command: id };
  // Each command has its own random sequence, so that commands do not influence one another.
  const own = seeded(Math.floor(random() * 2 ** 32));
  const times = { key, workMs: between(own, 0, workMs), doubled: own() < doubled };
  const action = own() < REST_SHARE ? 'rest' : 'work';
  return { ...times, action, random: own };
}

async function drive(load: Load, callers: Callers, command: Command): Promise<void> {
  const second = command.doubled ? [insist(load, callers, { command, caller: 'b' })] : [];
  await Promise.all([insist(load, callers, { command, caller: 'a' }), ...second]);
}

type AskResult = 'ended' | 'admitted' | 'refused' | 'nothing';
type Ask = { readonly command: Command; readonly caller: string };

/**
 * Asks randomly chosen relays until one reports the end of the command, or refuses the command after its admission.
 * Gives up after TRIES attempts.
 */
async function insist(load: Load, callers: Callers, { command, caller }: Ask): Promise<void> {
  let admitted = false;
  for (let turn = 1; turn <= TRIES; turn++) {
    const wait = `${command.key.command}.${caller}${turn}`;
    const result = await askOnce(load, callers, { command, wait, how: admitted ? 'attach' : 'invoke' });
    if (result === 'ended' || (result === 'refused' && admitted)) return;
    admitted ||= result === 'admitted';
    if (result !== 'admitted') await sleep(Math.min(PAUSE_MS.most, PAUSE_MS.first * 2 ** (turn - 1)));
  }
}

type Once = {
  readonly command: Command;
  readonly wait: string;
  readonly how: 'invoke' | 'attach';
  /** The name of the relay to ask; default: any relay. */
  readonly of?: string;
  /** A caller with its own token; default: an honest caller over HTTP or a link. */
  readonly by?: { readonly caller: Caller; readonly token: string };
};

function askingAnew(command: Command, of: string, n: number): Once {
  return { command, wait: `${command.key.command}.again${n + 1}`, how: 'attach', of };
}

async function askOnce(load: Load, callers: Callers, { command, wait, how, of, by: tried }: Once): Promise<AskResult> {
  const { log, relays, owners } = load;
  const budgetMs = load.connectMs + load.respondMs;
  const { key, action, random } = command;
  const relay = of ?? pick(random, relays).name;
  const caller = tried?.caller ?? callers.get(relay, key.user, random() < 0.5 ? 'http' : 'link');
  const token = tried && { token: tried.token };
  const owner = owners && { owner: owners.ownerOf(key.user) };
  log.write({ event: 'attempt', ...key, wait, relay, how, action, budgetMs, ...token, ...owner });
  const inProgress = { user: key.user, client: key.client, relay };
  owners?.calls.add(inProgress);
  try {
    const invocation = await (how === 'invoke' ? invoke(load, caller, command) : attach(caller, key, budgetMs));
    const { canary, by } = resultOf(invocation, fillerOf(key, load.bytes));
    const { outcome, execution } = invocation;
    const why = 'error' in invocation ? { code: invocation.error.code } : {};
    log.write({ event: 'answer', ...key, wait, outcome, execution, canary, by, ...why });
    return outcome === 'pending' ? 'admitted' : 'ended';
  } catch (error) {
    const code = error instanceof CallerError ? error.code : String(error);
    const refused = REFUSALS.has(code);
    log.write({ event: refused ? 'refused' : 'broken', ...key, wait, code });
    return refused ? 'refused' : 'nothing';
  } finally {
    owners?.calls.delete(inProgress);
  }
}

function invoke(
  { bytes, connectMs, respondMs }: Load,
  caller: Caller,
  { key, action, workMs }: Command,
): Promise<Invocation> {
  const budget = { connectWithinMs: connectMs, respondWithinMs: respondMs };
  const target = { userId: key.user, clientId: key.client, action };
  const params = { canary: canaryOf(key), workMs, ...(bytes > 0 && { filler: fillerOf(key, bytes) }) };
  return caller.invoke(target, params, { commandId: key.command, ...budget });
}

function attach(caller: Caller, { user, client, command }: Key, withinMs: number): Promise<Invocation> {
  return caller.await({ userId: user, clientId: client, commandId: command }, { withinMs });
}

type Result = { readonly canary: string | null; readonly by: string | null };

/**
 * Returns the canary and the instance from the result of an invocation. The canary is `other bytes` if the filler did
 * not come back unchanged.
 */
function resultOf(invocation: Invocation, filler: string): Result {
  const result = invocation.outcome === 'completed' ? invocation.result : null;
  if (typeof result !== 'object' || result === null) return { canary: null, by: null };
  const text = (name: string): string | null => {
    const value: unknown = Reflect.get(result, name);
    return typeof value === 'string' ? value : null;
  };
  const whole = (text('filler') ?? '') === filler;
  return { canary: whole ? text('canary') : 'other bytes', by: text('by') };
}

function sleep(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}
