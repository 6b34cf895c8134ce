/** One call of an agent while it runs and until its answer has arrived: what is known of its answer, and who ends it. */
import type { OwedAnswer } from '../core/calls/owed-answers.ts';
import type { CommandKey } from '../core/ids.ts';
import { AGENT_ARRIVED_MS } from '../core/limits.ts';
import type { Cancel, Clock } from '../core/ports.ts';
import type { HttpResponse, HttpSocket } from '../web/request.ts';

/** What a running call tells of its answer. `answered`: notes that the answer told the end of a command, whole. */
type RunningCallOptions = {
  readonly begin: (cancel: () => void) => OwedAnswer;
  readonly answered: (key: CommandKey) => void;
};

export class RunningCall {
  /** Who owes the answer, for the records. */
  readonly owed: OwedAnswer;
  readonly #ended = new AbortController();
  readonly #parts: RunningCallOptions;
  readonly #told = new Set<CommandKey>();
  #key: CommandKey | null = null;
  #tellsOwn = false;
  #isCancelled = false;
  #onCancel: (() => void) | null = null;
  #working = 1;
  #sending = true;

  constructor(parts: RunningCallOptions) {
    this.#parts = parts;
    this.owed = parts.begin(() => this.cancel());
  }

  /** Is aborted when the agent cancels the call, or hangs up. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** Whether the agent said that it cancels the call. */
  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  /** The answer will be the end of this command. Null: it will not. */
  owes(key: CommandKey | null): void {
    this.#key = key;
    this.owed.owes(key);
  }

  /** The answer tells how a command ended. */
  tells(key: CommandKey): void {
    if (key === this.#key) this.#tellsOwn = true;
    else this.#told.add(key);
  }

  /** The agent cancels the call. */
  cancel(): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    this.owed.lost();
    this.#ended.abort();
    this.#onCancel?.();
  }

  /** The connection closed or was reset before the whole answer was written. */
  hangUp(): void {
    this.owed.lost();
    this.#ended.abort();
  }

  /** The whole answer was written. */
  delivered(): void {
    this.owed.written(this.#tellsOwn);
    for (const key of this.#told) this.#parts.answered(key);
  }

  /** The connection was reset after the whole answer was written, so the answer may be lost. */
  reset(): void {
    this.owed.lost();
  }

  /** Calls `run` if the agent cancels the call after it hung up. */
  whenCancelled(run: () => void): void {
    this.#onCancel = run;
    if (this.#isCancelled) run();
  }

  /** Something more is done for the call, until the returned function is called. */
  keepWorking(): () => void {
    this.#working++;
    return () => this.workOver();
  }

  /** What was done for the call is over. */
  workOver(): void {
    this.#working--;
    this.#close();
  }

  /** Nothing more will be known of its answer. */
  sendingOver(): void {
    this.#sending = false;
    this.#close();
  }

  #close(): void {
    if (this.#working === 0 && !this.#sending) this.owed.close();
  }
}

// Notes which answers were written whole over HTTP, and which were lost.

/** A response with the answers of calls. `closingCancels`: the protocol says that closing it cancels the calls. */
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

  /** A request arrived: its sender has read the answer that the socket took before. */
  another(socket: HttpSocket): void {
    this.#watched.get(socket)?.();
  }

  /** Returns a function that takes a call whose answer is in the response. Each call is told what becomes of it. */
  expect({ socket, response, closingCancels }: Delivery): (call: RunningCall) => void {
    const calls: RunningCall[] = [];
    const closed = (call: RunningCall): void => {
      // A reset is no word of the agent: what is between may have failed.
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

  /** Watches for a reset of the connection, until it carries another request, closes, or AGENT_ARRIVED_MS are over. */
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
 * Lets a connection that is to be closed after its response be closed in stages, as RFC 9112 asks for: it stays open
 * for reading until the peer closes it, so that a reset is seen. The watch ends that.
 */
function closeInStages(socket: HttpSocket): void {
  socket.destroySoon = () => void socket.end();
}
