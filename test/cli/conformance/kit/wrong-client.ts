/** Runs the project's own client, of which one behaviour is wrong, as the client under test. */
import { WebSocket } from 'ws';
import { checkClient, type ClaimResult } from '../../../../src/cli/run/conformance.ts';
import type { ClientProgram } from '../../../../src/cli/conformance/trial.ts';
import {
  createRuntime,
  rawJson,
  type Call,
  type Clock,
  type Params,
  type SocketLike,
} from '../../../../src/clients/runtime/index.ts';
import { FRAME_SEPARATOR, joinFrame } from '../../../../src/protocol/frame-codec.ts';

export const ACTION = 'conformance.echo';
export const TOKEN = 'a-token-of-the-test';

export type WireFrame = {
  readonly header: Record<string, unknown> & { readonly type: string };
  readonly payload: string | null;
};

/** What a fault may do to the socket of a client. `index`: how many sockets the run had before. */
export type Place = {
  readonly index: number;
  /** What the fault remembers of one run of the client. */
  readonly memory: Map<string, unknown>;
  /** Sends a frame to the relay. */
  send(header: WireFrame['header'], payload?: string | null): void;
  close(code: number): void;
};

/** What is wrong with a client. `up` and `down` return the frames in place of one. */
export type Fault = {
  readonly url?: (url: string) => string;
  readonly offersNothing?: boolean;
  readonly up?: (frame: WireFrame, place: Place) => readonly WireFrame[];
  readonly down?: (frame: WireFrame, place: Place) => readonly WireFrame[];
  /** Whether the socket with this index never opens. */
  readonly isDead?: (index: number) => boolean;
  readonly instanceId?: string;
};

/** The most milliseconds of real time that pass on a fast clock in one turn of the event loop. */
const TURN_MS = 5;

/**
 * A clock on which time passes faster, but only a little in each turn of the event loop. Client and relay both run in
 * this process, so what one of them must do in time, it can do, however busy the machine is.
 */
function fastClock(factor: number): Clock & Disposable {
  const start = Date.now();
  const timers = new Set<{ readonly at: number; readonly run: () => void }>();
  let passed = 0;
  let last = performance.now();
  const ticks = setInterval(() => {
    const now = performance.now();
    passed += Math.min(now - last, TURN_MS) * factor;
    last = now;
    for (const timer of [...timers].filter(({ at }) => at <= passed).sort((a, b) => a.at - b.at))
      if (timers.delete(timer)) timer.run();
  }, 1);
  return {
    now: () => start + passed,
    after(ms, run) {
      const timer = { at: passed + ms, run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    [Symbol.dispose]: () => clearInterval(ticks),
  };
}

/** Returns the class of sockets of one run, through which each frame passes the fault. */
function socketsOf(fault: Fault) {
  const memory = new Map<string, unknown>();
  const open = new Set<WebSocket>();
  let count = 0;
  class WrongSocket implements SocketLike {
    readonly #socket: WebSocket | null;
    readonly #place: Place;

    constructor(url: string, protocols: string) {
      const index = count++;
      const dead = fault.isDead?.(index) === true;
      const socket = dead ? null : new WebSocket(fault.url?.(url) ?? url, fault.offersNothing ? [] : protocols);
      this.#socket = socket;
      if (socket) open.add(socket);
      this.#place = {
        ...{ index, memory },
        send: (header, payload = null) => socket?.send(joinFrame(header, payload)),
        close: (code) => socket?.close(code),
      };
    }

    get bufferedAmount(): number {
      return this.#socket?.bufferedAmount ?? 0;
    }

    addEventListener(...[type, listener]: Parameters<SocketLike['addEventListener']>): void {
      if (type !== 'message') return void this.#socket?.addEventListener(type, listener);
      this.#socket?.addEventListener('message', ({ data }) => {
        const frames = passed(String(data), fault.down, this.#place);
        for (const frame of frames) listener({ type: 'message', data: frame });
      });
    }

    send(text: string): void {
      const frames = text.split(FRAME_SEPARATOR).flatMap((frame) => passed(frame, fault.up, this.#place));
      if (frames.length > 0) this.#socket?.send(frames.join(FRAME_SEPARATOR));
    }

    close(code?: number, reason?: string): void {
      this.#socket?.close(code, reason);
    }
  }
  return { WrongSocket, cut: () => open.forEach((socket) => socket.terminate()) };
}

function passed(text: string, filter: Fault['up'], place: Place): readonly string[] {
  if (!filter) return [text];
  const cut = text.indexOf('\n');
  const header = JSON.parse(cut < 0 ? text : text.slice(0, cut));
  const frames = filter({ header, payload: cut < 0 ? null : text.slice(cut + 1) }, place);
  return frames.map((frame) => joinFrame(frame.header, frame.payload));
}

async function echo(params: Params, call: Call, clock: Clock): Promise<unknown> {
  const { progress, wait_ms: waitMs = 0, fail } = params;
  if (progress !== undefined) call.progress(progress);
  call.signal.throwIfAborted();
  if (Number(waitMs) > 0) {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    clock.after(Number(waitMs), resolve);
    call.signal.addEventListener('abort', () => reject(call.signal.reason), { once: true });
    await promise;
  }
  if (typeof fail === 'string') throw new Error(fail);
  return call.site ? params : rawJson(call.paramsText);
}

/** Starts one run of the client. */
function startClient(
  url: string,
  fault: Fault,
  { clock, changed }: { clock: Clock; changed: () => void },
): ClientProgram {
  const { WrongSocket, cut } = socketsOf(fault);
  const runtime = createRuntime({
    ...{ url, token: TOKEN, clientId: 'author-1', clientType: 'console', places: true, WebSocket: WrongSocket, clock },
    ...(fault.instanceId !== undefined && { instanceId: fault.instanceId }),
    random: () => 0.2,
    onStatus: changed,
    onError: () => {},
  });
  const schema = { type: 'object', properties: { wait_ms: { type: 'integer', minimum: 0 }, fail: { type: 'string' } } };
  runtime.handle(ACTION, { schema }, (params, call) => echo(params, call, clock));
  runtime.connect();
  return {
    get ended() {
      return runtime.status.state === 'closed';
    },
    leave: () => void runtime.close(),
    async kill() {
      cut();
      await runtime.close({ withinMs: 0 });
    },
  };
}

export type CheckSettings = { readonly leftOut?: readonly string[]; readonly restarts?: boolean };

/** Checks a client with this fault, four times as fast as a real one. Resolves with the results by the claim's name. */
export async function checkWrong(
  fault: Fault,
  { leftOut = [], restarts = true }: CheckSettings = {},
): Promise<ReadonlyMap<string, ClaimResult>> {
  const results = new Map<string, ClaimResult>();
  using clock = fastClock(4);
  let url = '';
  let own: ClientProgram | null = null;
  await checkClient({
    ...{ clock, port: 0, token: TOKEN, action: ACTION, withinMs: 8_000, connectWithinMs: 40_000, leftOut },
    stopped: new AbortController().signal,
    start: restarts ? (changed) => startClient(url, fault, { clock, changed }) : null,
    onListening(address) {
      url = address;
      if (!restarts) own = startClient(url, fault, { clock, changed: () => {} });
    },
    onResult: (result) => void results.set(result.name, result),
  });
  await (own as ClientProgram | null)?.kill();
  return results;
}
