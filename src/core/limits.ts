/** All bounds and defaults of the relay. Times are in milliseconds and sizes in bytes, unless a name says otherwise. */
import { JSON_DEPTH } from '../protocol/json-scan.ts';

export * from './limits-queries.ts';

// --- pages and samples -----------------------------------------------------------------------------------------------
/** The documented range of `limit` of /connections is 1 to 1000; every page takes the same range. */
export const PAGE_MAX = 1000;
export const PAGE_DEFAULT = 100;
/**
 * `/actions` is a sample of at most this many advertisements, from at most this many connections, of at most this many
 * bytes in all.
 */
export const ACTION_SAMPLE = 1000;
export const ACTION_SAMPLE_CONNECTIONS = 200;
export const ACTION_SAMPLE_BYTES = 4 * 1024 * 1024;
/** The raw sample of history: at most this many messages, and this many bytes. */
export const RAW_SAMPLE = 100;
export const RAW_SAMPLE_BYTES = 1024 * 1024;
/**
 * Bytes of one page, and of all lists of one answer together. Lists end early at these bounds and report it. Each row
 * counts ANSWER_ROW_BYTES besides its large parts, since writing a row takes time too.
 */
export const ANSWER_PAGE_BYTES = 4 * 1024 * 1024;
export const ANSWER_BYTES = 8 * 1024 * 1024;
export const ANSWER_ROW_BYTES = 1024;
/** Bytes of large payloads that one answer fetches from the spill store; payloads beyond stay redacted. */
export const ANSWER_SPILL_BYTES = 16 * 1024 * 1024;
/** A count scans at most this many rows; beyond, it is reported as incomplete. */
export const COUNT_SCAN = 100_000;

// --- names -----------------------------------------------------------------------------------------------------------
export const USER_MAX_CHARS = 128;
/** Length of a user id as it is given; the canonical form may be shorter (spaces, composed characters). */
export const USER_GIVEN_CHARS = 4 * USER_MAX_CHARS;
export const ID_MAX_CHARS = 128;
export const STREAM_SUFFIX_SEGMENTS = 8;
export const TRACE_MAX_CHARS = 256;

// --- sizes -----------------------------------------------------------------------------------------------------------
/** Characters of the reason of a cancel or a disconnect. */
export const MAX_REASON = 256;
export const MAX_FRAME_BYTES = 1024 * 1024;
export const MAX_BODY_BYTES = 1024 * 1024;
/** Larger payloads are kept in the spill store. */
export const INLINE_PAYLOAD_BYTES = 16 * 1024;
export const CLIENT_ACTIONS = 256;
export const ACTION_BYTES = 64 * 1024;
export const METADATA_BYTES = 16 * 1024;

// --- retention -------------------------------------------------------------------------------------------------------
export const STREAM_MESSAGES = 10_000;
export const RETENTION_MS = 7 * 24 * 3600_000;
/**
 * In direct mode, the bytes of all streams together. Beyond, messages of the user who is most over their guarantee are
 * evicted first, and completeness reports it.
 */
export const HISTORY_BYTES = 256 * 1024 * 1024;
export const STREAMS_PER_USER = 10_000;
/** A command retains at most one `progress` row in this time. */
export const PROGRESS_ROW_MS = 1000;

// --- the link --------------------------------------------------------------------------------------------------------
/** The interval of pings: below the 30 s after which browsers put idle workers to sleep. */
export const PING_MS = 20_000;
/** 2.25 ping intervals without a sign of life: the connection is stale. */
export const STALE_MS = 45_000;
/** Three ping intervals without a sign of life: the link is closed and the client counts as disconnected. */
export const DEAD_MS = 60_000;
/** How long a disconnected connection is still shown, and how long a replacement counts as recent. */
export const FORGET_MS = 60_000;
export const RECENT_REPLACEMENT_MS = 60_000;
/** Number of previous instances that a connection lists. */
export const PREDECESSORS = 10;
/** A new link must say hello within this time. */
export const HELLO_MS = 5_000;
/** Dispatched commands of one link that have not ended. */
export const IN_FLIGHT = 32;
/** Unanswered requests of one caller's link. */
export const CALLER_UNANSWERED = 256;
/** Bytes per second that one user may send, over links and HTTP bodies together. */
export const INBOUND_BYTES_PER_SECOND = 32 * 1024 * 1024;
/** Token bucket for unsolicited frames: tokens per second, and the size of the bucket. */
export const FRAME_RATE = 100;
export const FRAME_BURST = 200;
/** A link that sends this many malformed frames within this time is closed. */
export const BAD_FRAMES = 5;
export const BAD_FRAMES_MS = 60_000;
/**
 * Bytes that wait in a link's socket: above BACK_PRESSURE_BYTES nothing is dispatched on the link; above
 * BACK_PRESSURE_CLOSE_BYTES, or after BACK_PRESSURE_MS above the first bound, the link is closed.
 */
export const BACK_PRESSURE_BYTES = 1024 * 1024;
export const BACK_PRESSURE_CLOSE_BYTES = 8 * 1024 * 1024;
export const BACK_PRESSURE_MS = 30_000;
/** Characters of the header line of a frame: enough for a token of 8192 characters. */
export const HEADER_CHARS = 16 * 1024;
/**
 * A socket whose peer reads nothing of a pending answer for this long is closed. Event streams and links have bounds of
 * their own.
 */
export const READ_NOTHING_MS = 15_000;
/**
 * Open sockets without a valid token: per address, and in total. The total is lower if half of the process' file
 * descriptors are fewer.
 */
export const UNAUTHENTICATED_SOCKETS_PER_ADDRESS = 256;
export const UNAUTHENTICATED_SOCKETS = 8_192;
/** How long the link that signs a page in can be used. */
export const SIGN_IN_MS = 10 * 60_000;
/** JSON that is nested deeper is refused on input: it would overflow the stack of a program that reads it later. */
export { JSON_DEPTH };
/**
 * Members and items that the relay builds from one request or frame, without its payloads: building many takes long.
 */
export const ENVELOPE_PARTS = 1000;
/**
 * Params of up to this many bytes are compared by their canonical text, larger ones as they are written: sorting them
 * would take long.
 */
export const DIGEST_BYTES = 16 * 1024;

// --- commands --------------------------------------------------------------------------------------------------------
/** Commands that wait for one client or for their dispatch. */
export const QUEUE_PER_CLIENT = 1000;
/** Default capacity of an admission scope: its live commands. */
export const RESERVATIONS_PER_SCOPE = 10_000;
export const CONNECT_WITHIN_MS = { default: 0, min: 0, max: 300_000 } as const;
export const RESPOND_WITHIN_MS = { default: 30_000, min: 1_000, max: 300_000 } as const;
export const AWAIT_WITHIN_MS = { default: 30_000, min: 0, max: 600_000 } as const;
/** The bound of an alert about pending RPCs: from the interval of its checks to the longest life of a command. */
export const OLDER_THAN_MS = { default: 30_000, min: 1_000, max: 600_000 } as const;
/**
 * The idempotency window: how long an ended command's record, or at least its mark, is kept. Its default, and the range
 * of the setting.
 */
export const TERMINAL_MS = 3600_000;
export const TERMINAL_RANGE_MS = { min: 60_000, max: 24 * 3600_000 } as const;
/** For this long after a new instance has connected, commands bound to the previous one may still be answered by it. */
export const REPLACED_GRACE_MS = 5_000;
/**
 * Leaving links of one client on one node; beyond, the oldest is closed. The bound is low because each of them is
 * checked when a command of the client ends.
 */
export const LEAVING_LINKS = 4;
export const WAITERS_PER_COMMAND = 8;
export const SIGHTINGS_PER_COMMAND = 8;
export const RECONCILE_MS = 1_000;
export const RECONCILE_BATCH = 256;
/** How long a graceful shutdown waits for commands in flight. */
export const DRAIN_MS = 10_000;
/** The range of the time that an operator may give a drain. */
export const DRAIN_WITHIN_MS = { default: DRAIN_MS, min: 0, max: 600_000 } as const;
/**
 * A drain closes one link after another, this far apart and over at most DRAIN_SPREAD_MS, so that clients do not all
 * reconnect at once.
 */
export const DRAIN_SPREAD_LINK_MS = 10;
export const DRAIN_SPREAD_MS = 5_000;
/**
 * A draining node closes a link this long after the link's last command ended, so that the client still receives the
 * acknowledgement.
 */
export const DRAIN_CLOSE_DELAY_MS = 20;
/**
 * A closing node asks the shared store for the state of its callers' commands; after this time it answers the rest with
 * the state that it last knew.
 */
export const RELEASE_MS = 1_000;
/** How long an operator's request waits until the node concerned has carried it out, and how often it checks. */
export const OPERATOR_CONFIRM_MS = 2_000;
export const OPERATOR_POLL_MS = 50;

// --- nodes -----------------------------------------------------------------------------------------------------------
export const NODE_LEASE_MS = 8_000;
export const NODE_BEAT_MS = 2_000;
/**
 * A node whose last heartbeat is this old is silent: two heartbeats are missing, with a second to spare. Less than a
 * lease.
 */
export const NODE_SILENT_MS = 5_000;
/** A node that died stays listed as stale for this long after its lease ended. */
export const NODE_GONE_MS = 30_000;
/** A background loop of a node counts as alive if its last turn is younger than this. */
export const LOOP_ALIVE_MS = 5_000;
/**
 * Writes that a node keeps while its store is unavailable: their number, their bytes, the retry interval, and how many
 * are tried at once.
 */
export const RETRY_QUEUE_ENTRIES = 10_000;
export const RETRY_QUEUE_BYTES = 64 * 1024 * 1024;
export const RETRY_QUEUE_MS = 1_000;
export const RETRY_QUEUE_LANES = 64;

// --- deduplication ---------------------------------------------------------------------------------------------------
export const DEDUP_TTL_MS = 120_000;
export const DEDUP_GRAIN_MS = 10_000;
export const DEDUP_WINDOW_SECONDS = { default: 300, min: 10, max: 3600 } as const;

// --- ingest ----------------------------------------------------------------------------------------------------------
export const INGEST_BATCH = 100;

// --- spill -----------------------------------------------------------------------------------------------------------
/** Bytes of a spill store whose share has no total; beyond, payloads are refused with `store_full`. */
export const SPILL_BYTES = 1024 * 1024 * 1024;
/** A write to a managed spill store also removes expired objects, at most this often. */
export const SPILL_CLEAN_MS = 60_000;

// --- delivery --------------------------------------------------------------------------------------------------------
/** `/delivery/summary`: commands that are sampled to find the oldest ones. */
export const DELIVERY_SAMPLE = 1000;
export const SCOPE_HOLDERS = 100;

// --- sites -----------------------------------------------------------------------------------------------------------
export const SITES_PER_USER = 100;
export const SESSIONS_PER_SITE = 1000;
export const GRANTS_PER_SESSION = 100;
/** Event names, and likewise actions, that a site's descriptor or a grant may list. */
export const SITE_NAMES = 256;
export const SESSION_TTL_SECONDS = { default: 3600, min: 1, max: 24 * 3600 } as const;
/** How long an ended session is remembered, so that it is not reported as unknown. */
export const SESSION_KEPT_MS = 3600_000;
export const TICKET_MS = 30_000;
/** Tickets of one session that have not been redeemed. */
export const SESSION_TICKETS = 100;
/**
 * Redeemed tickets of one session that are still valid for reconnects; beyond, the one redeemed longest ago is dropped.
 */
export const SESSION_TICKETS_REDEEMED = 1000;
/** Open event streams check at least this often that their session still permits them. */
export const SESSION_WATCH_MS = 1_000;

// --- contexts, windows, workers --------------------------------------------------------------------------------------
export const CLIENT_CONTEXTS = 1000;
export const CLIENT_WINDOWS = 100;
export const WORKER_LIST = 1000;
export const TITLE_MAX_CHARS = 256;
