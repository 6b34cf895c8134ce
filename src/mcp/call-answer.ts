/**
 * Tracks one call of an agent until its answer has arrived: whether the agent cancelled it or hung up, and whether its
 * answer was written or lost.
 */
import type { OwedAnswer } from '../core/calls/owed-answers.ts';
import type { CommandKey } from '../core/ids.ts';
import { AGENT_ARRIVED_MS } from '../core/limits.ts';
import type { Cancel, Clock } from '../core/ports.ts';
import type { HttpResponse, HttpSocket } from '../web/request.ts';

/**
 * `begin`: registers the answer that is owed to the agent, with the function that cancels the call. `answered`: records
 * that the agent has received an answer which states how this command ended.
 */
type RunningCallOptions = {
  readonly begin: (cancel: () => void) => OwedAnswer;
  readonly answered: (key: CommandKey) => void;
};

export class RunningCall {
  /** The registration of the owed answer. The records of the command refer to it. */
  readonly owed: OwedAnswer;
  readonly #ended = new AbortController();
  readonly #options: RunningCallOptions;
  readonly #told = new Set<CommandKey>();
  #key: CommandKey | null = null;
  #tellsOwn = false;
  #isCancelled = false;
  #onCancel: (() => void) | null = null;
  #working = 1;
  #sending = true;

  constructor(options: RunningCallOptions) {
    this.#options = options;
    this.owed = options.begin(() => this.cancel());
  }

  /** Aborted when the agent cancels the call or hangs up. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** Whether the agent has explicitly cancelled the call. */
  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  /**
   * Records that the answer will state how this command ends; null: the answer will not state the end of any command.
   */
  owes(key: CommandKey | null): void {
    this.#key = key;
    this.owed.owes(key);
  }

  /** Records that the answer states how this command ended. */
  tells(key: CommandKey): void {
    if (key === this.#key) this.#tellsOwn = true;
    else this.#told.add(key);
  }

  /** Called when the agent cancels the call. */
  cancel(): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    this.owed.lost();
    this.#ended.abort();
    this.#onCancel?.();
  }

  /** Called when the connection was closed or reset before the whole answer was written. */
  hangUp(): void {
    this.owed.lost();
    this.#ended.abort();
  }

  /** Called when the whole answer was written. */
  delivered(): void {
    this.owed.written(this.#tellsOwn);
    for (const key of this.#told) this.#options.answered(key);
  }

  /** Called when the connection was reset after the whole answer was written. The answer may have been lost. */
  reset(): void {
    this.owed.lost();
  }

  /**
   * Registers `run`, which is called if the agent cancels the call after it has hung up. If it has cancelled already,
   * calls `run` now.
   */
  whenCancelled(run: () => void): void {
    this.#onCancel = run;
    if (this.#isCancelled) run();
  }

  /** Keeps the call open for further work until the returned function is called. */
  keepWorking(): () => void {
    this.#working++;
    return () => this.workOver();
  }

  /** Called when a piece of work for the call is done. */
  workOver(): void {
    this.#working--;
    this.#close();
  }

  /** Called when nothing more can become known about the delivery of the answer. */
  sendingOver(): void {
    this.#sending = false;
    this.#close();
  }

  #close(): void {
    if (this.#working === 0 && !this.#sending) this.owed.close();
  }
}

// Records which answers were completely written over HTTP, and which were lost.

/**
 * A response that contains the answers of calls. `closingCancels`: whether the protocol defines that an agent cancels
 * its calls by closing the response.
 */
export type Delivery = {
  readonly socket: HttpSocket;
  readonly response: HttpResponse;
  readonly closingCancels: boolean;
};

export class AnswerDeliveries {
  readonly #clock: Clock;
  readonly #watched = new Map<HttpSocket, () => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Called when a request arrives. Its sender must have read the answer that was sent over the socket before. */
  another(socket: HttpSocket): void {
    this.#watched.get(socket)?.();
  }

  /**
   * Returns a function that registers a call whose answer is in this response. The call is then notified of its
   * answer's delivery.
   */
  expect({ socket, response, closingCancels }: Delivery): (call: RunningCall) => void {
    const calls: RunningCall[] = [];
    const closed = (call: RunningCall): void => {
      // A reset does not prove that the agent closed the connection: something between may have failed.
      if (closingCancels && !socket.errored) call.cancel();
      else call.hangUp();
      call.sendingOver();
    };
    response.once('finish', () => {
      for (const call of calls) call.delivered();
      if (calls.length > 0) this.#watch(socket, calls);
    });
    response.once('close', () => {
      if (!response.writableFinished) calls.forEach(closed);
    });
    return (call) => {
      calls.push(call);
      closeInStages(socket);
      if (response.destroyed) closed(call);
    };
  }

  close(): void {
    for (const end of [...this.#watched.values()]) end();
  }

  /**
   * Watches for a reset of the connection until another request arrives over it, it closes, or AGENT_ARRIVED_MS have
   * passed.
   */
  #watch(socket: HttpSocket, calls: readonly RunningCall[]): void {
    this.another(socket);
    const lost = (): void => {
      for (const call of calls) call.reset();
    };
    const end = (): void => {
      cancelTimer();
      socket.off('error', lost);
      socket.off('close', end);
      this.#watched.delete(socket);
      for (const call of calls) call.sendingOver();
    };
    const cancelTimer: Cancel = this.#clock.after(AGENT_ARRIVED_MS, () => {
      end();
      if (socket.writableEnded) socket.destroy();
    });
    socket.once('error', lost);
    socket.once('close', end);
    this.#watched.set(socket, end);
    if (socket.destroyed) end();
  }
}

/**
 * Makes the response's end close only the sending side of the connection, as RFC 9112 recommends. The connection stays
 * open for reading until the peer closes it, so that a reset can be noticed. `#watch` destroys it in the end.
 */
function closeInStages(socket: HttpSocket): void {
  socket.destroySoon = () => void socket.end();
}
