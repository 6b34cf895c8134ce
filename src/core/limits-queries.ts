/** The bounds of GraphQL documents and subscriptions, as part of limits.ts. Times are milliseconds, sizes are bytes. */
import { JSON_DEPTH } from '../protocol/json-scan.ts';

// --- subscriptions ---------------------------------------------------------------------------------------------------
/** Events that the queue of a subscription holds (documented: 100); a full queue drops its oldest event. */
export const SUBSCRIPTION_QUEUE = 100;
export const SSE_PER_PRINCIPAL = 10;
export const SSE_PER_ADMIN = 200;
export const SSE_OPERATIONS = 100;
export const SSE_PING_MS = 20_000;

// --- documents -------------------------------------------------------------------------------------------------------
export const QUERY_DEPTH = 12;
export const QUERY_TOKENS = 4000;
/**
 * Nested braces, brackets and parentheses of a document, in selections and argument values alike. As deep as JSON may
 * be.
 */
export const QUERY_NESTING = JSON_DEPTH;
export const QUERY_ALIASES = 100;
export const QUERY_ROOT_FIELDS = 10;
export const QUERY_DIRECTIVES = 50;
export const QUERY_OPERATIONS = 50;
export const QUERY_FRAGMENTS = 50;
/** Steps of comparing fields of the same name that are merged. Each spread of a fragment counts. */
export const QUERY_MERGES = 10_000;
/** Characters of a document, checked before it is parsed. Large values belong in variables. */
export const QUERY_CHARS = 64 * 1024;
/** Ids that `nodes` takes. */
export const NODE_IDS = 100;
/** The longest id of a node: that of a message, whose user and stream suffix are as long as they may be. */
export const NODE_ID_CHARS = 4096;
/** Errors that validation reports for one document at most. */
export const QUERY_FAULTS = 10;
/**
 * Requests without a token: characters of a document that is parsed, the same where introspection is open, bytes of the
 * body, and the token bucket of an address (requests per second, size of the bucket).
 */
export const ANONYMOUS_QUERY_CHARS = 256;
export const ANONYMOUS_INTROSPECTION_CHARS = 4 * 1024;
export const ANONYMOUS_BODY_BYTES = 16 * 1024;
export const ANONYMOUS_RATE = 5;
export const ANONYMOUS_BURST = 300;
export const QUERY_COST_USER = 20_000;
export const QUERY_COST_ADMIN = 500_000;
export const QUERY_MS = 10_000;
/** Parsed and compiled documents that are cached, and the longest document (in characters) that is cached. */
export const QUERY_CACHE = 500;
export const QUERY_CACHE_CHARS = 16 * 1024;
/** A reserved single-connection stream that is not opened within this time is dropped. */
export const SSE_RESERVATION_MS = 30_000;
/**
 * The events of one tick are written as one chunk of up to about this many characters. Node buffers the same amount for
 * a socket before it reports back-pressure, so a slow reader costs at most twice this in its socket, besides its queue.
 */
export const SSE_MERGE_CHARS = 64 * 1024;
/** An event stream whose reader takes nothing for this long is closed. */
export const SSE_STALL_MS = 5 * SSE_PING_MS;

/**
 * Reads of pages that the store may answer at once, and how many of them may be one requester's. A page may take
 * PAGE_READ_BYTES, so 40 MiB are on their way at most.
 */
export const READ_TURNS = { atOnce: 8, perHolder: 2 } as const;
/**
 * Payload bytes after which a page of messages ends early, with its cursor. More than the first list of an answer may
 * take, so that such an answer is cut by its own budget.
 */
export const PAGE_READ_BYTES = 5 * 1024 * 1024;
