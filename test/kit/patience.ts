/**
 * The bounds of waits in tests. They end a wait for an event that never comes, so that the failure names the event. They
 * are far longer than any event takes on a busy machine, because no test may depend on how fast the machine is. Programs
 * that run tests to see them fail set CALLBOARD_TEST_WAIT_MS to less.
 */

/** The longest wait for one event, in milliseconds: a text in a page, an answer of a store, the exit of a process. */
export const WAIT_MS = Number(process.env['CALLBOARD_TEST_WAIT_MS'] ?? 60_000);
/** The longest run of one test or hook, in milliseconds. */
export const TEST_MS = 5 * WAIT_MS;
/** How long a token of a test is valid, in seconds. */
export const TOKEN_SECONDS = 24 * 3600;
/** The time between two looks at what is awaited, in milliseconds. */
const LOOK_MS = 50;

/**
 * Calls `look` again and again until it does not throw, and resolves with what it returned. `pauseMs`: the time after the
 * first look, which doubles up to that between others. A look that moves a clock must not come sooner than what it waits for.
 */
export async function eventually<T>(look: () => T | Promise<T>, pauseMs = LOOK_MS): Promise<T> {
  const end = performance.now() + WAIT_MS;
  for (let pause = pauseMs; ; pause = Math.min(2 * pause, LOOK_MS)) {
    try {
      return await look();
    } catch (error) {
      if (performance.now() >= end) throw error;
    }
    await new Promise((done) => setTimeout(done, pause));
  }
}

/** Leaves a call alone: it may end at any time, also because its relay closes with the test. */
export function unawaited(call: Promise<unknown>): void {
  call.catch(() => {});
}
