/** Opens a client at a test relay. The test answers its commands and can cut its link. */
import { WebSocket } from 'ws';
import type { ActionSpec, Params } from '../clients/link/actions.ts';
import { ActionError, type ActionErrorCode } from '../clients/runtime/action-errors.ts';
import { createRuntime } from '../clients/runtime/runtime.ts';
import type { TestClock } from './clock.ts';
import type { Call, Handler, Runtime, RuntimeOptions } from '../clients/runtime/types.ts';

/** The client to open. All members except `userId` and `actions` are options of a runtime. */
export type TestClientOptions = Partial<Omit<RuntimeOptions, 'actions' | 'url' | 'token' | 'clock' | 'WebSocket'>> & {
  readonly userId: string;
  readonly clientId: string;
  /** The actions by name, each with what it advertises; `{}` to advertise the name only. */
  readonly actions: Readonly<Record<string, ActionSpec>>;
};

/** A command that the client has received and not answered. Only the first answer has an effect. */
export type ReceivedCommand = {
  readonly action: string;
  readonly commandId: string;
  readonly params: Params;
  /** A signal that is aborted when the command is cancelled, and at its deadline. */
  readonly signal: AbortSignal;
  /** Reports progress. Returns false if it was not sent. */
  progress(value: unknown): boolean;
  /** Ends the command as completed, with this result. */
  answer(result?: unknown): void;
  /** Ends the command as failed. Default of `code`: `handler_failed`. */
  fail(message: string, code?: ActionErrorCode): void;
};

/** A connected client that answers its commands as the test says. */
export interface TestClient extends AsyncDisposable {
  readonly runtime: Runtime;
  /** From now on, a handler answers all commands of an action. They do not go to `received` any more. */
  answer(action: string, handler: Handler): void;
  /** Resolves with the next command of this action that nothing has answered. */
  received(action: string): Promise<ReceivedCommand>;
  /** Cuts the link without a close frame, as a power failure would. No new link is opened until `restoreLink`. */
  cutLink(): Promise<void>;
  /** Opens a link again. Resolves when the relay has accepted it. */
  restoreLink(): Promise<void>;
  /** Closes the client gracefully: it announces that it leaves. */
  close(): Promise<void>;
}

type Opened = Pick<RuntimeOptions, 'url' | 'token'> & {
  readonly clock: TestClock;
  /** Resolves when the relay has noticed that the client's link is down. */
  readonly noticed: () => Promise<void>;
};

/** The longest delay before a client connects again, in milliseconds. */
const PAUSE_MS = 30_000;

/** Opens a client. Resolves when the relay has accepted its link. */
export async function openTestClient(
  { userId: _user, clientId, clientType = 'console', actions, ...options }: TestClientOptions,
  { clock, noticed, ...opened }: Opened,
): Promise<TestClient> {
  const inbox = new Inbox();
  let isCut = false;
  const sockets = new Set<WebSocket>();
  const names = Object.entries(actions);
  const runtime = createRuntime({
    onStatus: () => {},
    ...options,
    ...opened,
    clock,
    clientId,
    clientType,
    actions: names.map(([name, spec]) => ({ ...spec, name, run: (params, call) => inbox.run(name, params, call) })),
    WebSocket: class extends WebSocket {
      constructor(url: string, protocols: string) {
        if (isCut) throw new Error('The test has cut the link.');
        super(url, protocols);
        sockets.add(this);
        this.on('close', () => sockets.delete(this));
      }
    },
  });
  runtime.connect();
  await runtime.ready();
  const close = async (): Promise<void> => {
    let isOver = false;
    const closing = runtime.close({ withinMs: 0 }).finally(() => (isOver = true));
    // If commands are unanswered, closing waits for a timer, so the clock must move.
    while (!isOver) await clock.advance(1);
    await closing;
  };
  return {
    runtime,
    answer: (action, handler) => inbox.answer(known(actions, action), handler),
    received: (action) => inbox.received(known(actions, action)),
    async cutLink() {
      isCut = true;
      for (const socket of sockets) socket.terminate();
      await noticed();
    },
    async restoreLink() {
      isCut = false;
      const ready = runtime.ready();
      await clock.advance(PAUSE_MS);
      await ready;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

function known(actions: TestClientOptions['actions'], action: string): string {
  if (Object.hasOwn(actions, action)) return action;
  throw new TypeError(`The client has no action "${action}"; it has ${Object.keys(actions).join(', ')}.`);
}

/** The commands that wait for an answer, and the tests that wait for a command. */
class Inbox {
  readonly #handlers = new Map<string, Handler>();
  readonly #waiting: { readonly command: ReceivedCommand; readonly run: (handler: Handler) => void }[] = [];
  readonly #tests: { readonly action: string; readonly take: (command: ReceivedCommand) => void }[] = [];

  answer(action: string, handler: Handler): void {
    this.#handlers.set(action, handler);
    for (const one of this.#waiting.filter(({ command }) => command.action === action)) {
      this.#waiting.splice(this.#waiting.indexOf(one), 1);
      one.run(handler);
    }
  }

  received(action: string): Promise<ReceivedCommand> {
    const at = this.#waiting.findIndex(({ command }) => command.action === action);
    const [found] = at < 0 ? [] : this.#waiting.splice(at, 1);
    if (found) return Promise.resolve(found.command);
    const { promise, resolve } = Promise.withResolvers<ReceivedCommand>();
    this.#tests.push({ action, take: resolve });
    return promise;
  }

  run(action: string, params: Params, call: Call): unknown {
    const handler = this.#handlers.get(action);
    if (handler) return handler(params, call);
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const command: ReceivedCommand = {
      action,
      params,
      commandId: call.commandId,
      signal: call.signal,
      progress: (value) => call.progress(value),
      answer: resolve,
      fail: (message, code) => reject(new ActionError(message, code)),
    };
    const at = this.#tests.findIndex((test) => test.action === action);
    const [test] = at < 0 ? [] : this.#tests.splice(at, 1);
    if (test) test.take(command);
    else this.#waiting.push({ command, run: (late) => resolve(new Promise((done) => done(late(params, call)))) });
    return promise;
  }
}
