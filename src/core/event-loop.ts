/** The port for the event loop of the process. */

/** Lets work that may take long step back for other work. Tests implement it to decide when the loop goes on. */
export interface EventLoop {
  /** Calls `run` once, after the loop has handled the input and the timers that are ready now. Never in the same tick. */
  afterOthers(run: () => void): void;
}
