/** Every bound of callboard in one place. Times are milliseconds, sizes are bytes, unless a name says otherwise. */
import { JSON_DEPTH } from '../protocol/json-scan.ts';

// --- pages and samples -----------------------------------------------------------------------------------------------
/** The documented interface: `limit` of /connections is 1 to 1000; every page of callboard takes the same range. */
export const PAGE_MAX = 1000;
export const PAGE_DEFAULT = 100;
/** `/actions`: a bounded sample, of at most this many advertisements from at most this many connections. */
export const ACTION_SAMPLE = 1000;
export const ACTION_SAMPLE_CONNECTIONS = 200;
export const ACTION_SAMPLE_BYTES = 4 * 1024 * 1024;
/** The raw sample is bounded by count and bytes. */
export const RAW_SAMPLE = 100;
export const RAW_SAMPLE_BYTES = 1024 * 1024;
/**
 * An answer's lists end early, and say so, at this many bytes of a page, and of all lists of an answer together. A row counts with so many
 * bytes besides what of it may be large, since writing it takes time too.
 */
export const ANSWER_PAGE_BYTES = 4 * 1024 * 1024;
export const ANSWER_BYTES = 8 * 1024 * 1024;
export const ANSWER_ROW_BYTES = 1024;
/** Bytes of large payloads that one answer fetches; those beyond stay redacted. */
export const ANSWER_SPILL_BYTES = 16 * 1024 * 1024;
/** Counts scan at most this many rows before they say that they are incomplete. */
export const COUNT_SCAN = 100_000;

// --- names -----------------------------------------------------------------------------------------------------------
export const USER_MAX_CHARS = 128;
/** As a user is given: it may become shorter (spaces, composed characters). */
export const USER_GIVEN_CHARS = 4 * USER_MAX_CHARS;
export const ID_MAX_CHARS = 128;
export const STREAM_SUFFIX_SEGMENTS = 8;
export const TRACE_MAX_CHARS = 256;

// --- sizes -----------------------------------------------------------------------------------------------------------
/** Characters of a reason that is given for a cancel or a disconnect. */
export const MAX_REASON = 256;
export const MAX_FRAME_BYTES = 1024 * 1024;
export const MAX_BODY_BYTES = 1024 * 1024;
/** Larger payloads go to the spill store. */
export const INLINE_PAYLOAD_BYTES = 16 * 1024;
export const CLIENT_ACTIONS = 256;
export const ACTION_BYTES = 64 * 1024;
export const METADATA_BYTES = 16 * 1024;

// --- retention -------------------------------------------------------------------------------------------------------
export const STREAM_MESSAGES = 10_000;
export const RETENTION_MS = 7 * 24 * 3600_000;
/** In memory mode, for all streams together: what goes first is of the user most over their guarantee, and completeness says so. */
export const HISTORY_BYTES = 256 * 1024 * 1024;
export const STREAMS_PER_USER = 10_000;
/** At most one `progress` row a command in this time. */
export const PROGRESS_ROW_MS = 1000;

// --- the link --------------------------------------------------------------------------------------------------------
/** Below the 30 s after which browsers put idle workers to sleep. */
export const PING_MS = 20_000;
/** 2.25 beats. */
export const STALE_MS = 45_000;
/** Three beats: the link is closed and the client counts as disconnected. */
export const DEAD_MS = 60_000;
/** How long a disconnected row is still shown, and for how long a replacement counts as recent. */
export const FORGET_MS = 60_000;
export const RECENT_REPLACEMENT_MS = 60_000;
/** Instances before the present one that a connection names. */
export const PREDECESSORS = 10;
export const HELLO_MS = 5_000;
export const IN_FLIGHT = 32;
export const CALLER_UNANSWERED = 256;
/** Of one user, over links and HTTP bodies together, a second. */
export const INBOUND_BYTES_PER_SECOND = 32 * 1024 * 1024;
/** Unsolicited frames: tokens a second, and how many may come at once. */
export const FRAME_RATE = 100;
export const FRAME_BURST = 200;
/** Frames that were not understood before a link is closed, and in which time. */
export const BAD_FRAMES = 5;
export const BAD_FRAMES_MS = 60_000;
/** Dispatching stops above the first; above the second, or after the time, the link is closed. */
export const BACK_PRESSURE_BYTES = 1024 * 1024;
export const BACK_PRESSURE_CLOSE_BYTES = 8 * 1024 * 1024;
export const BACK_PRESSURE_MS = 30_000;
/** The header line of a frame: a token of 8192 characters and room to spare. */
export const HEADER_CHARS = 16 * 1024;
/** A peer that reads nothing of an answer for this long is cut; event streams and links have bounds of their own. */
export const READ_NOTHING_MS = 15_000;
/** Open sockets over which no good token came: of one address, and of all. Of the descriptors of the process at most half. */
export const UNAUTHENTICATED_SOCKETS_PER_ADDRESS = 256;
export const UNAUTHENTICATED_SOCKETS = 8_192;
/** JSON that is nested deeper is refused where it enters: it would overflow the stack of a program that reads it later. */
export { JSON_DEPTH };
/** Members and items that the relay builds of one request or frame, payloads left out: building many takes long. */
export const ENVELOPE_PARTS = 1000;
/** Params up to this many bytes are compared by what they say, larger ones as they are written. */
export const DIGEST_BYTES = 16 * 1024;

// --- commands --------------------------------------------------------------------------------------------------------
export const QUEUE_PER_CLIENT = 1000;
export const RESERVATIONS_PER_SCOPE = 10_000;
export const CONNECT_WITHIN_MS = { default: 0, min: 0, max: 300_000 } as const;
export const RESPOND_WITHIN_MS = { default: 30_000, min: 1_000, max: 300_000 } as const;
export const AWAIT_WITHIN_MS = { default: 30_000, min: 0, max: 600_000 } as const;
/** For how long an ended command's id is known, and how long that may be set to: its record, or at least its mark. */
export const TERMINAL_MS = 3600_000;
export const TERMINAL_RANGE_MS = { min: 60_000, max: 24 * 3600_000 } as const;
/** After a new instance said hello, commands bound to the old one may still be answered for this long. */
export const REPLACED_GRACE_MS = 5_000;
/** Links that a client may be leaving at once on a node: each is looked at when a command of the client ends. Beyond, the oldest is closed. */
export const LEAVING_LINKS = 4;
export const WAITERS_PER_COMMAND = 8;
export const SIGHTINGS_PER_COMMAND = 8;
export const RECONCILE_MS = 1_000;
export const RECONCILE_BATCH = 256;
/** How long a graceful stop lets commands in flight finish. */
export const DRAIN_MS = 10_000;
/** What an operator may ask for. */
export const DRAIN_WITHIN_MS = { default: DRAIN_MS, min: 0, max: 600_000 } as const;
/** The closes of a drain are spread by this much for each link, and over at most so long: clients shall not all come back at once. */
export const DRAIN_SPREAD_LINK_MS = 10;
export const DRAIN_SPREAD_MS = 5_000;
/** A link of a draining node whose last command ended is closed this much later. */
export const DRAIN_LAST_WORD_MS = 20;
/** A closing node's callers are answered by what it last knew of their commands where a shared store does not say more within this time. */
export const RELEASE_MS = 1_000;
/** How long an operator's deed waits for the node concerned to say that it did it, and how often it looks. */
export const DEED_TOLD_MS = 2_000;
export const DEED_LOOK_MS = 50;

// --- nodes -----------------------------------------------------------------------------------------------------------
export const NODE_LEASE_MS = 8_000;
export const NODE_BEAT_MS = 2_000;
/** A node whose last beat is this old is silent: two beats are missing, with a second to spare. Less than a lease. */
export const NODE_SILENT_MS = 5_000;
/** A node that died is listed this much longer than its lease lasted, as stale. */
export const NODE_GONE_MS = 30_000;
/** A loop of a node counts as alive while its last turn is younger than this. */
export const LOOP_ALIVE_MS = 5_000;
/** What a node keeps for a store that is away, how often it tries again, and how much of it at once. */
export const OUTBOX_ENTRIES = 10_000;
export const OUTBOX_BYTES = 64 * 1024 * 1024;
export const OUTBOX_RETRY_MS = 1_000;
export const OUTBOX_LANES = 64;

// --- subscriptions ---------------------------------------------------------------------------------------------------
/** The documented interface: a subscription queue holds 100 events and discards its oldest. */
export const SUBSCRIPTION_QUEUE = 100;
export const SSE_PER_PRINCIPAL = 10;
export const SSE_PER_ADMIN = 200;
export const SSE_OPERATIONS = 100;
export const SSE_PING_MS = 20_000;

// --- documents -------------------------------------------------------------------------------------------------------
export const QUERY_DEPTH = 12;
export const QUERY_TOKENS = 4000;
/** Braces, brackets and parentheses within one another: beside fields, the values of arguments. As deep as JSON may be. */
export const QUERY_NESTING = JSON_DEPTH;
export const QUERY_ALIASES = 100;
export const QUERY_ROOT_FIELDS = 10;
export const QUERY_DIRECTIVES = 50;
export const QUERY_OPERATIONS = 50;
export const QUERY_FRAGMENTS = 50;
/** Steps of comparing fields of one name that are merged, fragments counted wherever they are spread. */
export const QUERY_MERGES = 10_000;
/** Characters of a document: checked before it is parsed. Larger values belong into variables. */
export const QUERY_CHARS = 64 * 1024;
/** What validation says at most is wrong with one document. */
export const QUERY_FAULTS = 10;
/** Without a token: characters of a document that is parsed at all, bytes of its body, and requests of one address (a second, and at once). */
export const ANONYMOUS_QUERY_CHARS = 256;
export const ANONYMOUS_INTROSPECTION_CHARS = 4 * 1024;
export const ANONYMOUS_BODY_BYTES = 16 * 1024;
export const ANONYMOUS_RATE = 5;
export const ANONYMOUS_BURST = 300;
export const QUERY_COST_USER = 20_000;
export const QUERY_COST_ADMIN = 500_000;
export const QUERY_MS = 10_000;
/** Parsed and compiled documents that are kept, and the longest text (characters) that is. */
export const QUERY_CACHE = 500;
export const QUERY_CACHE_CHARS = 16 * 1024;
/** A reservation of a single-connection stream that nobody opens is dropped. */
export const SSE_RESERVATION_MS = 30_000;
/**
 * Events of one tick travel as one write, up to about this much. It is also what Node holds for a socket before it asks to wait, so that a
 * slow reader costs at most twice this in its socket, besides its queue.
 */
export const SSE_MERGE_CHARS = 64 * 1024;
/** A stream whose reader takes nothing for this long is cut. */
export const SSE_STALL_MS = 5 * SSE_PING_MS;

// --- deduplication ---------------------------------------------------------------------------------------------------
export const DEDUP_TTL_MS = 120_000;
export const DEDUP_GRAIN_MS = 10_000;
export const DEDUP_WINDOW_SECONDS = { default: 300, min: 10, max: 3600 } as const;

// --- ingest ----------------------------------------------------------------------------------------------------------
export const INGEST_BATCH = 100;

// --- spill -----------------------------------------------------------------------------------------------------------
/** A spill store whose share has no total: beyond, payloads are refused with `store_full`. */
export const SPILL_BYTES = 1024 * 1024 * 1024;
/** A managed write also cleans up, at most this often. */
export const SPILL_CLEAN_MS = 60_000;

// --- delivery --------------------------------------------------------------------------------------------------------
/** `/delivery/summary`: commands looked at for its oldest ones. */
export const DELIVERY_SAMPLE = 1000;
export const SCOPE_HOLDERS = 100;

// --- sites -----------------------------------------------------------------------------------------------------------
export const SITES_PER_USER = 100;
export const SESSIONS_PER_SITE = 1000;
export const GRANTS_PER_SESSION = 100;
/** Event names, and actions, that a descriptor or a grant may list. */
export const SITE_NAMES = 256;
export const SESSION_TTL_SECONDS = { default: 3600, min: 1, max: 24 * 3600 } as const;
/** How long a session that is over is still told apart from one that never was. */
export const SESSION_KEPT_MS = 3600_000;
export const TICKET_MS = 30_000;
/** Tickets of one session that wait to be redeemed. */
export const SESSION_TICKETS = 100;
/** Redeemed tickets of one session that are still good for reconnects; beyond, the one redeemed longest ago goes. */
export const SESSION_TICKETS_REDEEMED = 1000;
/** Open streams look again at least so often whether their session still lets them. */
export const SESSION_WATCH_MS = 1_000;

// --- contexts, windows, workers --------------------------------------------------------------------------------------
export const CLIENT_CONTEXTS = 1000;
export const CLIENT_WINDOWS = 100;
export const WORKER_LIST = 1000;
export const TITLE_MAX_CHARS = 256;
