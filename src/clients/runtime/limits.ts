/** Bounds of the runtime. Sizes are bytes of UTF-8, times milliseconds. Those of actions, metadata and frames are the relay's (PROTOCOL.md, section 10). */
export const MAX_ACTIONS = 256;
export const MAX_ACTION_BYTES = 64 * 1024;
/** What a timer of JavaScript holds, milliseconds. */
export const MAX_TIMEOUT_MS = 2 ** 31 - 1;
export const MAX_METADATA_BYTES = 16 * 1024;
export const MAX_FRAME_BYTES = 1024 * 1024;
/** Cooperative sites that one client hosts: as many as the relay lets one user have. */
export const MAX_SITES = 100;
/** Ends kept until their `result_ack`. */
export const OUTBOX_ENDS = 256;
export const OUTBOX_BYTES = 1024 * 1024;
/** Commands that are remembered, so that none runs twice; the ends among them that can still be told again. */
export const LEDGER_IDS = 1000;
export const LEDGER_BYTES = 1024 * 1024;
/** Handlers that run at once: beyond the window, those that went on after their deadline. */
export const MAX_RUNNING = 256;
/** Progress is dropped while more than this waits in the socket. */
export const PROGRESS_BACKLOG_BYTES = 1024 * 1024;
/** Progress a second; more is dropped, so that a handler in a tight loop does not cost the link. */
export const PROGRESS_RATE = 50;
/** Kept ends that are sent again at once: a new link did not ask for them, so they come under the relay's rate (100 a second, 200 at once). */
export const RESEND_AT_ONCE = 100;
/** Reports of contexts and windows a second, so that a client in a hurry does not cost the link; what is more waits, and is told together. */
export const REPORT_RATE = 20;
export const REPORT_WAIT_MS = 100;
/** How long `close` waits for the relay's answer and for the commands that run, unless told otherwise. */
export const CLOSE_MS = 10_000;
/** When more kept ends follow, and when one that the relay could not take just now is sent again. */
export const RESEND_MS = 1_000;

const encoder = new TextEncoder();

/** Whether the text is at most so many bytes long; encodes it only where its length leaves a doubt. */
export function fits(text: string, bytes: number): boolean {
  return text.length * 3 <= bytes || (text.length <= bytes && encoder.encode(text).length <= bytes);
}

export function byteLength(text: string): number {
  return encoder.encode(text).length;
}
