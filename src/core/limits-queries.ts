/**
 * The bounds of GraphQL documents and subscriptions. Importers use them through limits.ts. Times are milliseconds,
 * sizes are bytes.
 */
import { JSON_DEPTH } from '../protocol/json-scan.ts';

// --- subscriptions ---------------------------------------------------------------------------------------------------
/** The most events in the queue of a subscription (documented: 100). A full queue drops its oldest event. */
export const SUBSCRIPTION_QUEUE = 100;
export const SSE_PER_PRINCIPAL = 10;
export const SSE_PER_ADMIN = 200;
export const SSE_OPERATIONS = 100;
export const SSE_PING_MS = 20_000;

// --- documents -------------------------------------------------------------------------------------------------------
export const QUERY_DEPTH = 12;
export const QUERY_TOKENS = 4000;
/**
 * The most levels of nested braces, brackets and parentheses in a document, in selections and argument values alike.
 * The same bound holds for JSON.
 */
export const QUERY_NESTING = JSON_DEPTH;
export const QUERY_ALIASES = 100;
export const QUERY_ROOT_FIELDS = 10;
export const QUERY_DIRECTIVES = 50;
export const QUERY_OPERATIONS = 50;
export const QUERY_FRAGMENTS = 50;
/**
 * The most steps of the check that finds fields which cannot be merged. Each spread of a fragment counts as steps of
 * its own.
 */
export const QUERY_MERGES = 10_000;
/** The most characters of a document, checked before it is parsed. Large values belong in variables. */
export const QUERY_CHARS = 64 * 1024;
/** The most ids that `nodes` accepts. */
export const NODE_IDS = 100;
/**
 * The most characters of the id of a node. The longest is that of a message whose user and stream suffix are as long as
 * possible.
 */
export const NODE_ID_CHARS = 4096;
/** The most errors that validation reports for one document. */
export const QUERY_FAULTS = 10;
/**
 * The bounds of requests without a token. The first two are the most characters of a document, the second of them where
 * introspection is open to all. Then follow the most bytes of the body, and the token bucket of an address: requests
 * per second, and size of the bucket.
 */
export const ANONYMOUS_QUERY_CHARS = 256;
export const ANONYMOUS_INTROSPECTION_CHARS = 4 * 1024;
export const ANONYMOUS_BODY_BYTES = 16 * 1024;
export const ANONYMOUS_RATE = 5;
export const ANONYMOUS_BURST = 300;
export const QUERY_COST_USER = 20_000;
export const QUERY_COST_ADMIN = 500_000;
export const QUERY_MS = 10_000;
/** How many parsed and compiled documents are cached, and the most characters of one of them. */
export const QUERY_CACHE = 500;
export const QUERY_CACHE_CHARS = 16 * 1024;
/** How long a single-connection event stream stays reserved without being opened. */
export const SSE_RESERVATION_MS = 30_000;
/**
 * The most characters, approximately, of one chunk of an event stream. The events of one tick are merged up to this
 * length. Node buffers as many characters for a socket before it reports back-pressure. A slow reader therefore costs
 * at most twice this length in its socket, besides its queue.
 */
export const SSE_MERGE_CHARS = 64 * 1024;
/** The time after which an event stream is closed if its reader has taken nothing. */
export const SSE_STALL_MS = 5 * SSE_PING_MS;

/**
 * The most reads of pages that run on the store at the same time, and the most of one requester. One page takes up to
 * PAGE_READ_BYTES, so at most 40 MiB are in transit. The same bounds hold for documents in progress that are not small.
 */
export const READ_TURNS = { atOnce: 8, perHolder: 2 } as const;
/**
 * The number of payload bytes after which a store ends a page of messages early. It is more than ANSWER_PAGE_BYTES, so
 * a page that is too large for an answer is cut at that bound first.
 */
export const PAGE_READ_BYTES = 5 * 1024 * 1024;

/**
 * What the documents that begin in one turn of the event loop may cost together. A dearer document begins alone. A unit
 * of cost takes at most 2.5 microseconds, so such a turn takes at most 25 milliseconds.
 */
export const DOCUMENT_TURN_COST = 10_000;
/** A document up to this cost does not count in READ_TURNS. */
export const DOCUMENT_SMALL_COST = 1_000;
/**
 * The most bytes that one document remembers of what it read: as much as one user is guaranteed to advertise. What
 * exceeds them is read again for each field that needs it.
 */
export const READING_BYTES = 16 * 1024 * 1024;
/**
 * The most rows of a store that one document loads at the same time. Their answers may arrive together, and decoding a
 * row of a context takes about 8 microseconds.
 */
export const ROWS_LOADED_TOGETHER = 1_000;

/** The minimum age of the waits that a listing of pending RPCs shows. */
export const MIN_AGE_MS = { default: 0, min: 0, max: 86_400_000 } as const;

/** How long a node waits for the answer of another node about the waits of its callers, in milliseconds. */
export const WAITS_ASK_MS = 1_000;
/** The most characters of the answer of another node about the waits of its callers. */
export const WAITS_ANSWER_CHARS = 4 * 1024 * 1024;
