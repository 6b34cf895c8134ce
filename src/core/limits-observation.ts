/** The bounds of filters, samples and live feeds for operators. Importers use them through limits.ts. */

/** The most labels that a filter may name, and the most characters of one, `key=value`. */
export const LABELS_PER_FILTER = 8;
export const LABEL_MAX_CHARS = 256;
/** The most labels of one client that a filter is compared with. */
export const LABELS_PER_CLIENT = 64;
/** The most characters of the error code that a client reports. */
export const ERROR_CODE_CHARS = 64;
/** The most characters of the text that a filter looks for. */
export const FILTER_TEXT_CHARS = 128;
/** The most events per second of one `commandEvents` subscription; further ones are left out and counted. */
export const COMMAND_EVENTS_PER_SECOND = 100;
/**
 * The interval, in milliseconds, at which a node tells the others that it listens to events of their commands. An
 * announcement is valid for LISTENING_MS, so two of them may be lost.
 */
export const LISTENING_ANNOUNCE_MS = 5_000;
export const LISTENING_MS = 16_000;
/** The length of one slot in which reconnects are counted, in milliseconds. A count covers the slots of one hour. */
export const RECONNECT_SLOT_MS = 5 * 60_000;
export const RECONNECT_SLOTS = 12;
/** The most clients whose reconnects are counted in one slot of one partition. */
export const RECONNECT_CLIENTS = 20_000;
/** The most clients that `flapping` lists. */
export const FLAPPING_MAX = 100;
