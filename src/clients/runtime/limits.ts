/**
 * Limits of the runtime. Sizes are bytes of UTF-8, times are milliseconds. The limits of actions, metadata and frames
 * are the relay's (PROTOCOL.md, section 10).
 */
export const MAX_ACTIONS = 256;
export const MAX_ACTION_BYTES = 64 * 1024;
/** The longest delay that setTimeout accepts. */
export const MAX_TIMEOUT_MS = 2 ** 31 - 1;
export const MAX_METADATA_BYTES = 16 * 1024;
export const MAX_FRAME_BYTES = 1024 * 1024;
/** The most cooperative sites of one client. Equals the relay's limit for one user. */
export const MAX_SITES = 100;
/** The most ends that wait for their `result_ack`. */
export const OUTBOX_ENDS = 256;
/** The most bytes of all ends that wait for their `result_ack`. */
export const OUTBOX_BYTES = 1024 * 1024;
/** The number of commands that the ledger remembers, so that none runs twice. */
export const LEDGER_IDS = 1000;
/** The most bytes of ends that the ledger keeps, to send them again. */
export const LEDGER_BYTES = 1024 * 1024;
/**
 * The most commands in progress at once. It is above the relay's window, because handlers may run on after their
 * deadline.
 */
export const MAX_RUNNING = 256;
/** The number of unsent bytes in the socket above which progress is dropped. */
export const PROGRESS_BACKLOG_BYTES = 1024 * 1024;
/**
 * The most progress frames per second. Further ones are dropped, so that a handler in a tight loop does not cost the
 * client its link.
 */
export const PROGRESS_RATE = 50;
/**
 * The number of kept ends that are sent again at once. They may be ends of commands that are not in flight on the new
 * link. The relay limits such frames to 100 a second and 200 at once.
 */
export const RESEND_AT_ONCE = 100;
/**
 * The most reports of contexts and windows per second, so that frequent changes do not cost the client its link.
 * Further changes wait for REPORT_WAIT_MS and are reported together.
 */
export const REPORT_RATE = 20;
export const REPORT_WAIT_MS = 100;
/** The default time that `close` waits for the relay's answer and for running commands. */
export const CLOSE_MS = 10_000;
/** The delay before further kept ends are sent, and before an end that the relay refused temporarily is sent again. */
export const RESEND_MS = 1_000;

const encoder = new TextEncoder();

/**
 * Returns whether the text has at most `bytes` bytes as UTF-8. Encodes the text only if its length alone does not
 * decide.
 */
export function fits(text: string, bytes: number): boolean {
  return text.length * 3 <= bytes || (text.length <= bytes && encoder.encode(text).length <= bytes);
}

export function byteLength(text: string): number {
  return encoder.encode(text).length;
}
