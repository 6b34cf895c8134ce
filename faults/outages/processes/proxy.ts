/** Runs a TCP proxy between the processes of a run. It can delay, cut or drop the data that pass. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, TLSSocket } from 'node:tls';
import { CommandCounter, type SentCommand } from './command-cut.ts';

/**
 * What the proxy does to its connections, open and new ones, until it is changed.
 * - `pass`: nothing.
 * - `black-hole`: data is dropped without notice, and such a connection never works again.
 * - `refuse`: each new connection is closed at once.
 * - `delay`: data arrives `ms` milliseconds later.
 * - `slice`: data arrives in pieces of at most `bytes`.
 */
type ProxyMode =
  | { readonly kind: 'pass' | 'black-hole' | 'refuse' }
  | { readonly kind: 'delay'; readonly ms: number }
  | { readonly kind: 'slice'; readonly bytes: number };

export type Proxy = AsyncDisposable & {
  readonly port: number;
  /** The number of open connections. */
  readonly size: number;
  set(mode: ProxyMode): void;
  /** Breaks all connections with RST. */
  reset(): void;
  /** Closes all connections on the target's side only. The side that connected does not notice it and waits. */
  halfOpen(): void;
  /**
   * Closes all connections on the connecting side only. The target does not notice it until the returned function is
   * called.
   */
  breakNear(): () => void;
  /**
   * From now on, each open connection silently drops all data to its target (or from it), and its connecting side does
   * not notice if the target closes the connection. The returned function then does the same to these connections as
   * `breakNear`.
   */
  swallow(direction: Direction): () => () => void;
  /**
   * From now on, holds back what the connecting side of each new connection sends after its target's first answer. For
   * a WebSocket these are the frames; the handshake passes.
   */
  holdBack(): HeldBack;
  /** Drops the next answer of a target and closes its connection. The request itself has arrived. */
  dropReply(): void;
  /** The number of answers that `dropReply` has dropped so far. */
  readonly dropped: number;
  /**
   * From now on, breaks each connection to Redis at its first command for which `breaksAt` returns true: the command
   * arrives, but its answer does not. `breaksAt` is called once for each of the first 200 commands of each connection.
   * The proxy must have the option `counts`. Null: breaks no connections.
   */
  breakAt(breaksAt: ((command: SentCommand) => boolean) | null): void;
};

/** Connections whose first data a proxy holds back. */
type HeldBack = {
  /** The number of connections with held-back data. */
  readonly size: number;
  /**
   * Closes these connections on the connecting side only, and holds back no more data of later connections. The
   * returned functions send the held-back data to the targets, and close the connections to the targets.
   */
  breakNear(): { readonly release: () => void; readonly close: () => void };
};

export type ProxyOptions = {
  /** Whether the proxy counts commands to Redis, as `breakAt` needs it; default false. */
  readonly counts?: boolean;
  /** The certificate for accepting connections over TLS. Connections to targets never use TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
};

/** Returns the loopback ports to which a connection may go, in order of preference. Called for each connection. */
export type Targets = () => readonly number[];

type Pair = {
  readonly near: Socket;
  readonly far: Socket;
  dead: boolean;
  cutOff: boolean;
  late: boolean;
  /** The direction in which no data pass any more; null: none. */
  swallows: Direction | null;
  /** Whether the target has sent any data. */
  answered: boolean;
  /** The held-back data to the target; null: data pass. */
  readonly held: Buffer[] | null;
  readonly counter: CommandCounter | null;
};
type Direction = 'up' | 'down';
type State = {
  mode: ProxyMode;
  drops: number;
  dropped: number;
  holding: boolean;
  readonly counts: boolean;
  breaksAt: ((command: SentCommand) => boolean) | null;
};

/** Starts a TCP proxy on the loopback address that can inject faults. */
export async function startProxy(targets: Targets, { counts = false, tls }: ProxyOptions = {}): Promise<Proxy> {
  const pairs = new Set<Pair>();
  const state: State = { mode: { kind: 'pass' }, drops: 0, dropped: 0, holding: false, counts, breaksAt: null };
  const accept = (near: Socket): void => {
    near.on('error', ignore);
    if (state.mode.kind === 'refuse') return void near.destroy();
    near.pause();
    void reach(targets()).then((far) => (far ? join(pairs, state, near, far) : near.destroy()));
  };
  const server = tls ? createTlsServer(tls, accept) : createServer({ allowHalfOpen: false }, accept);
  if (tls) server.on('tlsClientError', ignore);
  const port = await listen(server);
  const each = (act: (pair: Pair) => void): void => [...pairs].forEach(act);
  return {
    port,
    get size() {
      return pairs.size;
    },
    get dropped() {
      return state.dropped;
    },
    set(mode) {
      state.mode = mode;
    },
    reset: () => each(breakOff),
    halfOpen: () =>
      each((pair) => {
        pair.cutOff = true;
        pair.far.destroy();
      }),
    breakNear: () => breakNear([...pairs]),
    swallow(direction) {
      const open = [...pairs];
      for (const pair of open) pair.swallows = direction;
      return () => breakNear(open);
    },
    holdBack() {
      state.holding = true;
      const held = (): readonly Pair[] => [...pairs].filter((pair) => pair.held !== null && pair.held.length > 0);
      return {
        get size() {
          return held().length;
        },
        breakNear() {
          state.holding = false;
          const broken = held();
          const close = breakNear(broken);
          const release = (): void => broken.forEach(({ far, held }) => void far.write(Buffer.concat(held ?? [])));
          return { release, close };
        },
      };
    },
    dropReply() {
      state.drops++;
    },
    breakAt(breaksAt) {
      state.breaksAt = breaksAt;
    },
    async [Symbol.asyncDispose]() {
      each(breakOff);
      server.close();
      await once(server, 'close');
    },
  };
}

function ignore(): void {}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Connects to the first of these ports that accepts a connection; null if none does. */
async function reach(ports: readonly number[]): Promise<Socket | null> {
  for (const port of ports) {
    const far = connect(port, '127.0.0.1');
    far.on('error', ignore);
    const open = await new Promise<boolean>((done) => {
      far.once('connect', () => done(true));
      far.once('close', () => done(false));
    });
    if (open) return far;
  }
  return null;
}

/** Closes connections on the connecting side only. The returned function closes them on the target's side. */
function breakNear(broken: readonly Pair[]): () => void {
  for (const pair of broken) {
    pair.dead = true;
    pair.late = true;
    pair.near.resetAndDestroy();
  }
  return () => broken.forEach(({ far }) => far.destroy());
}

function join(pairs: Set<Pair>, state: State, near: Socket, far: Socket): void {
  const counter = state.counts ? new CommandCounter((command) => state.breaksAt?.(command) ?? false) : null;
  const held = state.holding ? [] : null;
  const flags = { dead: false, cutOff: false, late: false, swallows: null, answered: false };
  const pair: Pair = { near, far, ...flags, held, counter };
  if (near.destroyed) return void far.destroy();
  pairs.add(pair);
  near.on('close', () => {
    pairs.delete(pair);
    if (!pair.late) far.destroy();
  });
  far.on('close', () => {
    if (!pair.cutOff && !pair.dead && pair.swallows === null) near.destroy();
  });
  carry(pair, 'up', state);
  carry(pair, 'down', state);
}

function carry(pair: Pair, direction: Direction, state: State): void {
  const [from, to] = direction === 'up' ? [pair.near, pair.far] : [pair.far, pair.near];
  const later = createLater();
  from.on('data', (bytes: Buffer) => {
    if (state.mode.kind === 'black-hole') pair.dead = true;
    if (pair.dead || pair.cutOff || pair.swallows === direction) return;
    if (direction === 'down') pair.answered = true;
    else if (pair.held && pair.answered) return void pair.held.push(bytes);
    if (direction === 'down' && state.drops > 0) {
      state.drops--;
      state.dropped++;
      return breakOff(pair);
    }
    const passing = pair.counter ? pair.counter[direction](bytes) : bytes;
    if (passing === null) return breakOff(pair);
    const { mode } = state;
    later.add(mode.kind === 'delay' ? mode.ms : 0, () => send(to, passing, mode));
    if (to.writableNeedDrain) {
      from.pause();
      to.once('drain', () => from.resume());
    }
  });
  from.on('end', () => {
    if (!pair.dead && !pair.cutOff && pair.swallows === null) later.add(0, () => void to.end());
  });
  from.resume();
}

/** Returns a queue that runs functions in order and not before their times, so that no data overtake delayed data. */
function createLater(): { add(ms: number, act: () => void): void } {
  const waiting: { readonly at: number; readonly act: () => void }[] = [];
  const turn = (): void => {
    while (waiting[0] && waiting[0].at <= performance.now()) waiting.shift()?.act();
    if (waiting[0]) setTimeout(turn, Math.ceil(waiting[0].at - performance.now()));
  };
  return {
    add(ms, act) {
      if (ms === 0 && waiting.length === 0) return act();
      waiting.push({ at: performance.now() + ms, act });
      if (waiting.length === 1) setTimeout(turn, ms);
    },
  };
}

function send(to: Socket, bytes: Buffer, mode: ProxyMode): void {
  if (!to.writable) return;
  if (mode.kind !== 'slice') return void to.write(bytes);
  to.setNoDelay(true);
  for (let from = 0; from < bytes.length; from += mode.bytes) to.write(bytes.subarray(from, from + mode.bytes));
}

function breakOff({ near, far }: Pair): void {
  for (const socket of [near, far]) {
    // Destroyed instead of reset: Node refuses to reset a socket that is shutting down, and then keeps its handle
    // forever, so that the process could not end. A TLS connection cannot be reset.
    const shutting = socket.writableEnded && !socket.writableFinished;
    if (shutting || socket instanceof TLSSocket) socket.destroy();
    else socket.resetAndDestroy();
  }
}
