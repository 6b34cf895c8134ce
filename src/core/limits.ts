/** All bounds and defaults of the relay. Times are in milliseconds and sizes in bytes, unless a name says otherwise. */
import { JSON_DEPTH } from '../protocol/bounds.ts';

/** The bounds of frames and calls, which libraries check too. */
export {
  AWAIT_WITHIN_MS,
  CONNECT_WITHIN_MS,
  ENVELOPE_DEPTH,
  HEADER_CHARS,
  JSON_DEPTH,
  MAX_FRAME_BYTES,
  RESPOND_WITHIN_MS,
} from '../protocol/bounds.ts';
export { TRACE_MAX_CHARS } from '../protocol/fields.ts';

// --- pages and samples -----------------------------------------------------------------------------------------------
/** The most rows of any page. */
export const PAGE_MAX = 1000;
export const PAGE_DEFAULT = 100;
/**
 * The first number that is read as epoch milliseconds, which is in March 1973. A smaller one other than 0 is refused:
 * its sender means seconds, and would get what happened since January 1970.
 */
export const FIRST_EPOCH_MS = 1e11;
/** The bounds of the sample `/actions`: advertisements, connections, and bytes in all. */
export const ACTION_SAMPLE = 1000;
export const ACTION_SAMPLE_CONNECTIONS = 200;
export const ACTION_SAMPLE_BYTES = 2 * 1024 * 1024;
/** The bounds of the raw sample of history: messages and bytes. */
export const RAW_SAMPLE = 100;
export const RAW_SAMPLE_BYTES = 1024 * 1024;
/**
 * The most bytes of one page, and of all lists of one answer together. Lists end early at these bounds and report it.
 * Each row counts ANSWER_ROW_BYTES besides its large parts, because writing a row takes time too. An answer is made in
 * one turn of the event loop, which takes up to 25 milliseconds for each MiB of its text.
 */
export const ANSWER_PAGE_BYTES = 2 * 1024 * 1024;
export const ANSWER_BYTES = 4 * 1024 * 1024;
export const ANSWER_ROW_BYTES = 1024;
/** The most bytes of large payloads that one answer fetches from the spill store. Further payloads stay redacted. */
export const ANSWER_SPILL_BYTES = 16 * 1024 * 1024;
/** The most rows that a count scans. A count that stops there is reported as incomplete. */
export const COUNT_SCAN = 100_000;

// --- names -----------------------------------------------------------------------------------------------------------
export const USER_MAX_CHARS = 128;
/** The most characters of a user id as it is given. The canonical form may be shorter (spaces, composed characters). */
export const USER_GIVEN_CHARS = 4 * USER_MAX_CHARS;
export const ID_MAX_CHARS = 128;
export const STREAM_SUFFIX_SEGMENTS = 8;

// --- sizes -----------------------------------------------------------------------------------------------------------
/** The most characters of the reason for a cancel, a disconnect or a pause. */
export const MAX_REASON = 256;
export const MAX_BODY_BYTES = 1024 * 1024;
/** The most bytes of a payload that is kept with its message. Larger payloads go to the spill store. */
export const INLINE_PAYLOAD_BYTES = 16 * 1024;
export const CLIENT_ACTIONS = 256;
/**
 * The most actions of one question about who may call them, and what each costs in a document. The policy decides 40
 * times for an action: with 100 rules that takes a millisecond.
 */
export const PERMITTED_ACTIONS = 20;
export const PERMITTED_ACTION_COST = 400;
export const ACTION_BYTES = 64 * 1024;
export const METADATA_BYTES = 16 * 1024;
/** The most commands that a client may name in its hello as received and not ended for the relay. */
export const RECEIVED_IDS = 1000;
/**
 * The most members and items that the relay builds from one request or frame, without its payloads, because building
 * many takes long.
 */
export const ENVELOPE_PARTS = 1000;
/**
 * The most bytes of params that are compared by their canonical text. Larger params are compared as they are written,
 * because sorting their members would take long.
 */
export const DIGEST_BYTES = 16 * 1024;

// --- audit and reveals -----------------------------------------------------------------------------------------------
/** How many rows the audit keeps, and for how long. */
export const AUDIT_ROWS = 100_000;
export const AUDIT_KEEP_MS = 90 * 24 * 3600_000;
/**
 * How many revocations are kept: rows that name a token up to the first number, others up to the second. And for how
 * long: ten years, as long as `callboard token` lets a token live.
 */
export const REVOCATIONS_MAX = 100_000;
export const REVOCATIONS_MAX_WIDE = 110_000;
/**
 * How many of these one user may set, in the same way, so that nobody fills what everybody needs; and how many are left
 * to administrators.
 */
export const REVOCATIONS_PER_USER = 1_000;
export const REVOCATIONS_PER_USER_WIDE = 1_100;
export const REVOCATIONS_OF_ADMINS = 10_000;
/** The longest id of a token by which it can be revoked, in characters. */
export const TOKEN_ID_CHARS = 256;
export const REVOCATION_KEEP_MS = 10 * 365 * 24 * 3600_000;
/** How long another node may take to say that it has ended what a revocation covers, in milliseconds. */
export const REVOKE_WITHIN_MS = 1_000;
/** How many devices are kept, in all and of one user. */
export const DEVICES_MAX = 50_000;
export const DEVICES_OF_USER = 5_000;
export const DEVICE_NAME_CHARS = 64;
/** How many patterns of actions a device may name. */
export const DEVICE_ACTIONS = 100;
/** How long the token of a device lives. The device renews it. */
export const DEVICE_TOKEN_SECONDS = 3600;
/** How long the code of an enrolment is valid, in milliseconds. */
export const ENROLMENT_MS = 600_000;
/** How many enrolments are open, in all and of one network. */
export const ENROLMENTS_OPEN = 1_000;
export const ENROLMENTS_OF_NETWORK = 20;
/** How many enrolments are begun in the time of one: of one network or person, and on one node in all. */
export const ENROLMENTS_BEGUN_OF_NETWORK = 200;
export const ENROLMENTS_BEGUN = 10_000;
/** How many tokens one device gets in the same time. */
export const DEVICE_TOKENS = 60;
/** How many wrong codes one person enters in a time. */
export const CODE_TRIES = { most: 5, ms: 600_000 };
/** The fewest characters of the reason for revealing a payload. MAX_REASON is the most. */
export const REVEAL_REASON_MIN = 8;
/** How many payloads one administrator may reveal with a reason in an hour. */
export const REVEALS_PER_HOUR = 60;

// --- retention -------------------------------------------------------------------------------------------------------
export const STREAM_MESSAGES = 10_000;
export const RETENTION_MS = 7 * 24 * 3600_000;
/**
 * In direct mode, the most bytes of all streams together. Beyond that, messages of the user who is most over their
 * guarantee are evicted first, and completeness reports it.
 */
export const HISTORY_BYTES = 256 * 1024 * 1024;
export const STREAMS_PER_USER = 10_000;
/** The most rows of one user's link history: enough for a thousand links that opened and ended. */
export const LINK_MESSAGES = 2_000;
/**
 * In direct mode, the most bytes of all link histories together, and the bytes that are guaranteed to each user. Beyond
 * the total, rows of the user who is most over the guarantee are evicted first.
 */
export const LINK_BYTES = 32 * 1024 * 1024;
export const LINK_BYTES_GUARANTEE = 64 * 1024;
/** The shortest time between two `progress` rows that are retained for one command. */
export const PROGRESS_ROW_MS = 1000;

// --- the link --------------------------------------------------------------------------------------------------------
/** How long an HTTP connection may be idle between two requests. */
export const KEEP_ALIVE_MS = 10_000;
/** The interval of pings: below the 30 s after which browsers put idle workers to sleep. */
export const PING_MS = 20_000;
/** The time without a sign of life after which a connection is stale: 2.25 ping intervals. */
export const STALE_MS = 45_000;
/**
 * The time without a sign of life after which a link is closed and its client counts as disconnected: three ping
 * intervals.
 */
export const DEAD_MS = 60_000;
/** How long a disconnected connection is still shown, and how long a replacement counts as recent. */
export const FORGET_MS = 60_000;
export const RECENT_REPLACEMENT_MS = 60_000;
/** The most previous instances that a connection lists. */
export const PREDECESSORS = 10;
/** The time within which a new link must say hello. */
export const HELLO_MS = 5_000;
/** The most commands of one link that are dispatched and have not ended. */
export const IN_FLIGHT = 32;
/** The most unanswered requests of one caller's link. */
export const CALLER_UNANSWERED = 256;
/** The most bytes per second that one user may send, over links and HTTP bodies together. */
export const INBOUND_BYTES_PER_SECOND = 32 * 1024 * 1024;
/** A byte that a client advertises counts as this many bytes sent: it is parsed, compared, recorded and published. */
export const ADVERTISED_BYTE_COST = 8;
/** The most bytes of large messages of links that are handled in one turn of the event loop. A larger one is alone. */
export const MESSAGE_TURN_BYTES = 256 * 1024;
/** A message of fewer bytes waits for no turn, unless one of its link waits before it. */
export const LARGE_MESSAGE_BYTES = 16 * 1024;
/** The token bucket for unsolicited frames: tokens per second, and the size of the bucket. */
export const FRAME_RATE = 100;
export const FRAME_BURST = 200;
/** The number of malformed frames within BAD_FRAMES_MS that closes a link. */
export const BAD_FRAMES = 5;
export const BAD_FRAMES_MS = 60_000;
/**
 * The bounds of the bytes that wait in a link's socket. Above BACK_PRESSURE_BYTES nothing is dispatched on the link.
 * Above BACK_PRESSURE_CLOSE_BYTES, or after BACK_PRESSURE_MS above the first bound, the link is closed.
 */
export const BACK_PRESSURE_BYTES = 1024 * 1024;
export const BACK_PRESSURE_CLOSE_BYTES = 8 * 1024 * 1024;
export const BACK_PRESSURE_MS = 30_000;

// --- sockets and sign-in ---------------------------------------------------------------------------------------------
/**
 * The time after which a socket is closed if its peer reads nothing of a pending answer. Event streams and links have
 * bounds of their own.
 */
export const READ_NOTHING_MS = 15_000;
/**
 * The most open sockets without a valid token: per address, and in total. The total is lower if the process has fewer
 * file descriptors (`platform/system.ts`). A new socket that exceeds a limit evicts another one.
 */
export const UNAUTHENTICATED_SOCKETS_PER_ADDRESS = 256;
export const UNAUTHENTICATED_SOCKETS = 8_192;
/** How long the URL that signs in a browser page is valid. */
export const SIGN_IN_MS = 10 * 60_000;
/** How long a sign-in ticket of an operator is valid, and the token that the operator gets for it. */
export const SIGN_IN_TICKET_SECONDS = 60;
export const OPERATOR_TOKEN_SECONDS = 8 * 3600;

// --- pauses ----------------------------------------------------------------------------------------------------------
/** The most pauses of a deployment; over owners, of each partition. */
export const PAUSES = 1000;
/** How many of these only administrators may set. */
export const PAUSES_OF_ADMINS = 100;
/** The most pauses that a user and the clients of the user may have set. */
export const PAUSES_PER_USER = 20;
/** How many of these only the user may set, so that clients which pause themselves never keep the person from it. */
export const PAUSES_OF_PERSONS = 5;
/** How often a user may pause and resume within an hour. */
export const PAUSES_PER_HOUR = 240;
/** How many rows of the audit an hour the clients of a user may add by pausing themselves. Further ones are not audited. */
export const CLIENT_PAUSES_PER_HOUR = 120;
/**
 * How often the clients of a user may resume, or replace their pauses, without and after a rest. A client that is not
 * paused may always pause.
 */
export const CLIENT_RESUMES_AT_ONCE = 40;
export const CLIENT_RESUMES_PER_SECOND = 1;
/** How many pauses that have ended a store remembers. */
export const ENDED_PAUSES = 1000;
/** The most milliseconds that a pause with an end may last. */
export const PAUSE_MS = 400 * 24 * 3600_000;
/** The most characters of a pattern of a pause. */
export const PAUSE_PATTERN_CHARS = 256;

// --- commands --------------------------------------------------------------------------------------------------------
/** The most commands of one client that are not dispatched yet. */
export const QUEUE_PER_CLIENT = 1000;
/**
 * In direct mode, the most callers of one rate rule whose buckets are remembered. The bucket that was used longest ago is
 * forgotten first; it is full when it is used again.
 */
export const RATE_CALLERS = 10_000;
/** The default capacity of an admission scope, in live commands. */
export const RESERVATIONS_PER_SCOPE = 10_000;
/** How long a subscription to the updates of a command may wait for its admission. */
export const ADMITTED_WITHIN_MS = { default: 0, min: 0, max: 60_000 } as const;
/**
 * The range of the age at which pending RPCs raise an alert. It begins at the interval of the checks and ends at the
 * longest life of a command.
 */
export const OLDER_THAN_MS = { default: 30_000, min: 1_000, max: 600_000 } as const;
/**
 * The default of the idempotency window, and the range of its setting. The id of an ended command is remembered for the
 * length of this window, so that the command does not run again.
 */
export const TERMINAL_MS = 3600_000;
export const TERMINAL_RANGE_MS = { min: 60_000, max: 24 * 3600_000 } as const;
/**
 * How long, after a new instance has connected, the previous instance may still answer the commands that are bound to
 * it.
 */
export const REPLACED_GRACE_MS = 5_000;
/**
 * The most leaving links of one client on one node. Beyond that, the oldest is closed. The bound is low because each of
 * them is checked when a command of the client ends.
 */
export const LEAVING_LINKS = 4;
export const WAITERS_PER_COMMAND = 8;
export const SIGHTINGS_PER_COMMAND = 8;
export const RECONCILE_MS = 1_000;
export const RECONCILE_BATCH = 256;
/** How long a graceful shutdown waits for running commands. */
export const DRAIN_MS = 10_000;
/** The range of the time that an operator may give to a drain. */
export const DRAIN_WITHIN_MS = { default: DRAIN_MS, min: 0, max: 600_000 } as const;
/**
 * The time between the closing of two links in a drain, and the most time in which all links are closed. Links are
 * closed one after another, so that clients do not all reconnect at once.
 */
export const DRAIN_SPREAD_LINK_MS = 10;
export const DRAIN_SPREAD_MS = 5_000;
/**
 * The time between the end of a link's last command and the closing of the link by a draining node, so that the client
 * still receives the acknowledgement.
 */
export const DRAIN_CLOSE_DELAY_MS = 20;
/**
 * How long a closing node waits for the shared store to return the state of its callers' commands. Then it answers the
 * remaining callers with the state that it last knew.
 */
export const RELEASE_MS = 1_000;
/** How long an operator's request waits for a node to carry it out, and the interval at which it checks this. */
export const OPERATOR_CONFIRM_MS = 2_000;
export const OPERATOR_POLL_MS = 50;

// --- nodes -----------------------------------------------------------------------------------------------------------
export const NODE_LEASE_MS = 8_000;
export const NODE_BEAT_MS = 2_000;
/**
 * The age of a node's last heartbeat at which the node counts as silent: two heartbeats are missing, with a second to
 * spare. Less than a lease.
 */
export const NODE_SILENT_MS = 5_000;
/** How long a node that died stays listed as stale after its lease ended. */
export const NODE_GONE_MS = 30_000;
/** The time for which a background loop of a node counts as alive after it last did its work. */
export const LOOP_ALIVE_MS = 5_000;
/**
 * The bounds of writes that a node keeps while its store is unavailable: their number, their bytes, the retry interval,
 * and how many are tried at once.
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
/**
 * The most bytes of a spill store for which no total is configured. Beyond that, payloads are refused with
 * `store_full`.
 */
export const SPILL_BYTES = 1024 * 1024 * 1024;
/**
 * The shortest time between two searches for expired objects in a spill store in a directory or in memory. A write
 * begins the search. If a store in memory is full, each write searches.
 */
export const SPILL_CLEAN_MS = 60_000;

// --- delivery --------------------------------------------------------------------------------------------------------
/** How many commands `/delivery/summary` samples to find the oldest ones. */
export const DELIVERY_SAMPLE = 1000;
export const SCOPE_HOLDERS = 100;

// --- contexts, windows, workers --------------------------------------------------------------------------------------
export const CLIENT_CONTEXTS = 1000;
/** How many contexts of a client are remembered after they left, so that no later one with the same id is addressed. */
export const LEFT_CONTEXTS = 256;
export const CLIENT_WINDOWS = 100;
export const WORKER_LIST = 1000;
export const TITLE_MAX_CHARS = 256;

// --- series of metrics -----------------------------------------------------------------------------------------------
/**
 * The most series in one answer, and the most points of each. A request without a step gets at most
 * SERIES_POINTS_DEFAULT points.
 */
export const SERIES_LINES = 64;
export const SERIES_POINTS = 1000;
export const SERIES_POINTS_DEFAULT = 720;
/** The range of the time window of series, in seconds: from one slot to all that is kept. */
export const SERIES_WINDOW_SECONDS = { default: 3600, min: 5, max: 24 * 3600 } as const;
/** How long a node waits for what other nodes recorded, and the most characters of the answer that a node sends. */
export const SERIES_ASK_MS = 1_000;
export const SERIES_ANSWER_CHARS = 1024 * 1024;
/** The most admission scopes of the policy that `/metrics` names: those with the most reservations. */
export const SHOWN_SCOPES = 20;

// --- filters, samples and live feeds for operators -------------------------------------------------------------------
/** How many groups of failures an answer shows, those with most failures. */
export const SHOWN_FAILURES = { default: 20, min: 1, max: 100 } as const;
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
 * The interval at which a node tells the others that it listens to events of their commands. An announcement is valid
 * for LISTENING_MS, so two of them may be lost.
 */
export const LISTENING_ANNOUNCE_MS = 5_000;
export const LISTENING_MS = 16_000;
/** The length of one slot in which reconnects are counted. A count covers the slots of one hour. */
export const RECONNECT_SLOT_MS = 5 * 60_000;
export const RECONNECT_SLOTS = 12;
/** The most clients whose reconnects are counted in one slot of one partition. */
export const RECONNECT_CLIENTS = 20_000;
/** The most clients that `flapping` and `topClients` list. */
export const TOP_CLIENTS_MAX = 100;

// --- subscriptions and event streams ---------------------------------------------------------------------------------
/** The most events in the queue of a subscription (documented: 100). A full queue drops its oldest event. */
export const SUBSCRIPTION_QUEUE = 100;
export const SSE_PER_PRINCIPAL = 10;
export const SSE_PER_ADMIN = 200;
export const SSE_OPERATIONS = 100;
export const SSE_PING_MS = 20_000;
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

// --- GraphQL documents -----------------------------------------------------------------------------------------------
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
 * The bounds of requests without a token: the most characters of a document, the same where introspection is open to
 * all, the most bytes of the body, and the token bucket of an address (requests per second, and its size).
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

// --- reads and documents in progress ---------------------------------------------------------------------------------
/**
 * The most reads of pages that run on the store at the same time, and the most of one requester. One page takes up to
 * PAGE_READ_BYTES, so at most 40 MiB are in transit. The same bounds hold for documents in progress whose cost is above
 * DOCUMENT_SMALL_COST.
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
/**
 * The most records of commands that the filters of one document scan over Redis, all pages together: as many as a page.
 * 10,000 take 60 ms of a relay's CPU and 150 ms of Redis' own. Beyond them each page reads SCANNED_AT_LEAST and ends.
 */
export const SCANNED_TOGETHER = 10_000;
/** The records that each page of commands may scan, whatever its document has scanned, so that its cursor moves on. */
export const SCANNED_AT_LEAST = 64;
/**
 * Up to this many commands, a page of the newest ones of a user or client reads only their commands. With more, it reads
 * those of all users, and may end before it comes to one of theirs. One call reads the names, and one the records.
 */
export const OWN_COMMANDS = 255;

// --- pending RPCs ----------------------------------------------------------------------------------------------------
/** The minimum age of the waits that a listing of pending RPCs shows. */
export const MIN_AGE_MS = { default: 0, min: 0, max: 86_400_000 } as const;
/** How long a node waits for the answer of another node about the waits of that node's callers. */
export const WAITS_ASK_MS = 1_000;
/** The most characters of that answer. */
export const WAITS_ANSWER_CHARS = 4 * 1024 * 1024;

// --- agents (MCP) ----------------------------------------------------------------------------------------------------
/** How long a call of an agent waits for the end. Common hosts give up after a minute. */
export const AGENT_WAIT_MS = 45_000;
/** The time between two messages of progress. */
export const AGENT_PROGRESS_MS = 5_000;
/** How long an equal call may come after the connection of an agent closed, before the command is cancelled. */
export const AGENT_HUNG_UP_MS = 10_000;
/** For how long after an answer a reset of its connection shows that the answer was lost. */
export const AGENT_ARRIVED_MS = 10_000;
/** For how long after its end the answer of a call is given to an equal call if it was lost. */
export const AGENT_UNARRIVED_MS = 600_000;
/** A call that runs for longer, or that ran for longer, is named to an equal one, because its host may have given up. */
export const AGENT_STILL_RUNNING_MS = 10_000;
export const AGENT_LONG_CALL_MS = 30_000;
/** The most clients of a user among which one is searched: for its tools, and for a call that names none. */
export const AGENT_CLIENTS = 1_000;
/** The most actions of a user that have a tool of their own. */
export const AGENT_TOOLS = 300;
/** The most variants of one action, as clients advertise it in different words, whose texts and schemas are shown. */
export const AGENT_VARIANTS = 4;
/** How long a list of tools may be kept by hosts without an event stream that tells of changes. */
export const AGENT_LIST_TTL_MS = 5_000;
/** How long the tools of a user are remembered after the last request of the user's agents. */
export const AGENT_CATALOG_MS = 60_000;
/** The shortest time between two messages of one stream that say that the list of tools has changed. */
export const AGENT_LIST_CHANGED_MS = 1_000;
/**
 * The longest name of a tool. Hosts put their name for the server before it, and models accept 64 characters in all.
 */
export const AGENT_TOOL_NAME_CHARS = 40;
/** The longest description of a tool. */
export const AGENT_DESCRIPTION_CHARS = 1_024;
/** The longest schema of one tool as it is listed, the most of one client, and the most of all tools of a list. */
export const AGENT_SCHEMA_CHARS = 16 * 1024;
export const AGENT_CLIENT_SCHEMAS_CHARS = 256 * 1024;
export const AGENT_SCHEMAS_CHARS = 1024 * 1024;
/** The most members and items of an advertised schema, and the most levels of schemas within schemas. */
export const AGENT_SCHEMA_PARTS = 4_000;
export const AGENT_SCHEMA_LEVELS = 24;
/** The most schemas of which a listed one consists, and the most levels of them. Hosts refuse more levels. */
export const AGENT_LISTED_SCHEMAS = 500;
export const AGENT_LISTED_LEVELS = 10;
/** The longest text in a schema, and the most characters of what it says besides, such as a default. */
export const AGENT_SCHEMA_TEXT_CHARS = 600;
export const AGENT_SCHEMA_NOTES_CHARS = 240;
/** The most values of an enumeration that a schema lists as one, and the longest of them. */
export const AGENT_ENUM_VALUES = 250;
export const AGENT_ENUM_CHARS = 100;
/** The most actions of a user among which find_actions searches. */
export const AGENT_SEARCHED_ACTIONS = 2_000;
/** The most characters and words of a query of find_actions. */
export const AGENT_QUERY_CHARS = 128;
export const AGENT_QUERY_WORDS = 8;
/** The most members and items, and the most bytes, of a message besides the arguments of its call. */
export const AGENT_MESSAGE_PARTS = 1_000;
export const AGENT_MESSAGE_CHARS = 64 * 1024;
/** The largest result of a call that is sent whole. */
export const AGENT_RESULT_CHARS = 256 * 1024;
/** The most actions that find_actions shows. */
export const AGENT_FOUND_ACTIONS = 100;
/** The most clients of one action that describe_action shows, and that the refusal `ambiguous_client` names. */
export const AGENT_DESCRIBED_CLIENTS = 20;
export const AGENT_SHOWN_CLIENTS = 20;
/** The most contexts of a client that list_clients shows. */
export const AGENT_SHOWN_CONTEXTS = 50;

// --- sites, sessions and grants --------------------------------------------------------------------------------------
export const SITES_PER_USER = 100;
export const SESSIONS_PER_SITE = 1000;
export const GRANTS_PER_SESSION = 100;
/** The most event names, and the most actions, that a site's descriptor or a grant may list. */
export const SITE_NAMES = 256;
export const SESSION_TTL_SECONDS = { default: 3600, min: 1, max: 24 * 3600 } as const;
/** How long an ended session is remembered, so that it is not reported as unknown. */
export const SESSION_KEPT_MS = 3600_000;
export const TICKET_MS = 30_000;
/** The most tickets of one session that have not been redeemed. */
export const SESSION_TICKETS = 100;
/**
 * The most redeemed tickets of one session that are valid for reconnects. Beyond that, the one redeemed longest ago is
 * dropped.
 */
export const SESSION_TICKETS_REDEEMED = 1000;
/** The longest time between two checks whether the session of an open event stream still permits the stream. */
export const SESSION_WATCH_MS = 1_000;
