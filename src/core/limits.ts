/** All bounds and defaults of the relay. Times are in milliseconds, sizes in bytes, unless the name says otherwise. */
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
 * The smallest number that is accepted as epoch milliseconds: a time in March 1973. A smaller number other than 0 is
 * refused, because its sender probably means seconds, and would get everything since January 1970.
 */
export const FIRST_EPOCH_MS = 1e11;
/** The bounds of the sample `/actions`: advertisements, connections, and the total of their bytes. */
export const ACTION_SAMPLE = 1000;
export const ACTION_SAMPLE_CONNECTIONS = 200;
export const ACTION_SAMPLE_BYTES = 2 * 1024 * 1024;
/** The bounds of the raw sample of history: messages and bytes. */
export const RAW_SAMPLE = 100;
export const RAW_SAMPLE_BYTES = 1024 * 1024;
/**
 * The most bytes of one page, and of all lists of one answer together. A list that reaches a bound ends early and
 * reports it. Each row counts ANSWER_ROW_BYTES in addition to its large members, because writing a row takes time. An
 * answer is written in one turn of the event loop, which takes up to 25 milliseconds for each MiB.
 */
export const ANSWER_PAGE_BYTES = 2 * 1024 * 1024;
export const ANSWER_BYTES = 4 * 1024 * 1024;
export const ANSWER_ROW_BYTES = 1024;
/** The most bytes of large payloads that one answer fetches from the spill store. Further payloads stay redacted. */
export const ANSWER_SPILL_BYTES = 16 * 1024 * 1024;
/** The most rows that a count scans. A count that stops at this bound is reported as incomplete. */
export const COUNT_SCAN = 100_000;

// --- names -----------------------------------------------------------------------------------------------------------
export const USER_MAX_CHARS = 128;
/** The most characters of a user id in a request. Its canonical form may be shorter (spaces, composed characters). */
export const USER_GIVEN_CHARS = 4 * USER_MAX_CHARS;
export const ID_MAX_CHARS = 128;
export const STREAM_SUFFIX_SEGMENTS = 8;

// --- sizes -----------------------------------------------------------------------------------------------------------
/** The most characters of the reason for a cancel, a disconnect or a pause. */
export const MAX_REASON = 256;
export const MAX_BODY_BYTES = 1024 * 1024;
/** The most bytes of a payload that is stored in its history row. Larger payloads go to the spill store. */
export const INLINE_PAYLOAD_BYTES = 16 * 1024;
export const CLIENT_ACTIONS = 256;
/**
 * The most actions in one request for permissions, and the cost of each action in a document. For each action the
 * policy decides 40 times; with 100 rules this takes a millisecond.
 */
export const PERMITTED_ACTIONS = 20;
export const PERMITTED_ACTION_COST = 400;
export const ACTION_BYTES = 64 * 1024;
export const METADATA_BYTES = 16 * 1024;
/** The most commands that a client's hello may list as received and not yet reported as ended. */
export const RECEIVED_IDS = 1000;
/**
 * The most members and items that the relay builds from one request or frame, not counting payloads, because building
 * many takes long.
 */
export const ENVELOPE_PARTS = 1000;
/**
 * The most bytes of params that are compared by meaning. Larger params are compared as text, because sorting their
 * members would take long.
 */
export const DIGEST_BYTES = 16 * 1024;

// --- audit and reveals -----------------------------------------------------------------------------------------------
/** How many rows the audit keeps, and for how long. */
export const AUDIT_ROWS = 100_000;
export const AUDIT_KEEP_MS = 90 * 24 * 3600_000;
/**
 * The most revocations that are stored: a row that names a token is refused beyond the first number, other rows beyond
 * the second. REVOCATION_KEEP_MS below is how long they are stored: ten years, the longest life that `callboard token`
 * gives a token.
 */
export const REVOCATIONS_MAX = 100_000;
export const REVOCATIONS_MAX_WIDE = 110_000;
/**
 * The most revocations that one user may set, with the same two numbers, so that no user fills up the total; and how
 * many of the total only administrators may set.
 */
export const REVOCATIONS_PER_USER = 1_000;
export const REVOCATIONS_PER_USER_WIDE = 1_100;
export const REVOCATIONS_OF_ADMINS = 10_000;
/** The longest token id by which a token can be revoked, in characters. */
export const TOKEN_ID_CHARS = 256;
export const REVOCATION_KEEP_MS = 10 * 365 * 24 * 3600_000;
/** How long to wait for another node to confirm that it has ended the links and sockets of a revocation. */
export const REVOKE_WITHIN_MS = 1_000;
/** The most enrolled devices: in total, and of one user. */
export const DEVICES_MAX = 50_000;
export const DEVICES_OF_USER = 5_000;
export const DEVICE_NAME_CHARS = 64;
/** The most action patterns that a device may name. */
export const DEVICE_ACTIONS = 100;
/** How long the token of a device is valid. The device renews it. */
export const DEVICE_TOKEN_SECONDS = 3600;
/** How long the code of an enrolment is valid. */
export const ENROLMENT_MS = 600_000;
/** The most open enrolments: in total, and from one network. */
export const ENROLMENTS_OPEN = 1_000;
export const ENROLMENTS_OF_NETWORK = 20;
/** The most enrolments begun within ENROLMENT_MS: by one network or one person, and on one node in total. */
export const ENROLMENTS_BEGUN_OF_NETWORK = 200;
export const ENROLMENTS_BEGUN = 10_000;
/** The most tokens that one device gets within ENROLMENT_MS. */
export const DEVICE_TOKENS = 60;
/** How many wrong codes one person may enter (`most`) within a time (`ms`). */
export const CODE_TRIES = { most: 5, ms: 600_000 };
/** The fewest characters of the reason for revealing a payload; the most are MAX_REASON. */
export const REVEAL_REASON_MIN = 8;
/** How many payloads one administrator may reveal within an hour by giving a reason. */
export const REVEALS_PER_HOUR = 60;

// --- retention -------------------------------------------------------------------------------------------------------
export const STREAM_MESSAGES = 10_000;
export const RETENTION_MS = 7 * 24 * 3600_000;
/**
 * In direct mode, the most bytes of all streams together. Beyond this, messages of the user who exceeds its guarantee
 * most are evicted first, and completeness reports it.
 */
export const HISTORY_BYTES = 256 * 1024 * 1024;
export const STREAMS_PER_USER = 10_000;
/** The most rows of one user's link history: enough for a thousand links that opened and ended. */
export const LINK_MESSAGES = 2_000;
/**
 * In direct mode, the most bytes of all link histories together, and the bytes that each user is guaranteed. Beyond the
 * total, rows of the user who exceeds the guarantee most are evicted first.
 */
export const LINK_BYTES = 32 * 1024 * 1024;
export const LINK_BYTES_GUARANTEE = 64 * 1024;
/** The shortest time between two progress rows of one command in history. */
export const PROGRESS_ROW_MS = 1000;

// --- the link --------------------------------------------------------------------------------------------------------
/** How long an HTTP connection may be idle between two requests. */
export const KEEP_ALIVE_MS = 10_000;
/** The interval of pings. It is below the 30 s after which browsers put idle workers to sleep. */
export const PING_MS = 20_000;
/** A connection is stale after this time without a sign of life: 2.25 ping intervals. */
export const STALE_MS = 45_000;
/**
 * A link is closed, and its client counts as disconnected, after this time without a sign of life: three ping
 * intervals.
 */
export const DEAD_MS = 60_000;
/** How long a disconnected connection is still listed, and how long a replacement counts as recent. */
export const FORGET_MS = 60_000;
export const RECENT_REPLACEMENT_MS = 60_000;
/** The most previous instances that a connection lists. */
export const PREDECESSORS = 10;
/** A new link must send its hello within this time. */
export const HELLO_MS = 5_000;
/** The most commands of one link that are dispatched and not ended. */
export const IN_FLIGHT = 32;
/** The most unanswered requests of one caller's link. */
export const CALLER_UNANSWERED = 256;
/** The most bytes per second that one user may send, over links and HTTP bodies together. */
export const INBOUND_BYTES_PER_SECOND = 32 * 1024 * 1024;
/** An advertised byte counts as this many bytes sent, because it is parsed, compared, recorded and published. */
export const ADVERTISED_BYTE_COST = 8;
/** The most bytes of large link messages handled in one turn of the event loop. A larger message is handled alone. */
export const MESSAGE_TURN_BYTES = 256 * 1024;
/** A smaller message is handled at once, unless another message of its link waits for its turn. */
export const LARGE_MESSAGE_BYTES = 16 * 1024;
/** The token bucket for unsolicited frames: tokens per second, and the capacity of the bucket. */
export const FRAME_RATE = 100;
export const FRAME_BURST = 200;
/** A link is closed after BAD_FRAMES malformed frames within BAD_FRAMES_MS. */
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
 * A socket is closed if its peer has read nothing of a pending answer for this time. Event streams and links have their
 * own bounds.
 */
export const READ_NOTHING_MS = 15_000;
/**
 * The most open sockets without a valid token: per address, and in total. The total is lower if the process may open
 * few files (`platform/system.ts`). If a new socket exceeds a limit, another one is evicted.
 */
export const UNAUTHENTICATED_SOCKETS_PER_ADDRESS = 256;
export const UNAUTHENTICATED_SOCKETS = 8_192;
/** How long the URL that signs in a browser page is valid. */
export const SIGN_IN_MS = 10 * 60_000;
/** How long an operator's sign-in ticket is valid, and how long the token is valid for which it is exchanged. */
export const SIGN_IN_TICKET_SECONDS = 60;
export const OPERATOR_TOKEN_SECONDS = 8 * 3600;

// --- pauses ----------------------------------------------------------------------------------------------------------
/** The most pauses of a deployment or, in shared mode with owners, of each partition. */
export const PAUSES = 1000;
/** How many of PAUSES only administrators may set. */
export const PAUSES_OF_ADMINS = 100;
/** The most pauses that a user and the user's clients may have set at the same time. */
export const PAUSES_PER_USER = 20;
/** How many of these only the user may set, so that clients that pause themselves cannot use up all of them. */
export const PAUSES_OF_PERSONS = 5;
/** How often a user may pause or resume within an hour. */
export const PAUSES_PER_HOUR = 240;
/** How many audit rows per hour the clients of a user may cause by pausing. Further pauses are not audited. */
export const CLIENT_PAUSES_PER_HOUR = 120;
/**
 * How often the clients of a user may resume or replace their pauses: at once after a rest, and per second afterwards.
 * A client that is not paused may always pause.
 */
export const CLIENT_RESUMES_AT_ONCE = 40;
export const CLIENT_RESUMES_PER_SECOND = 1;
/** How many ended pauses a store remembers. */
export const ENDED_PAUSES = 1000;
/** The longest time for which a pause with an end may be set. */
export const PAUSE_MS = 400 * 24 * 3600_000;
/** The most characters of an action pattern of a pause. */
export const PAUSE_PATTERN_CHARS = 256;

// --- commands --------------------------------------------------------------------------------------------------------
/** The most commands of one client that are not dispatched yet. */
export const QUEUE_PER_CLIENT = 1000;
/**
 * In direct mode, the most callers of one rate rule whose buckets are remembered. The bucket that was not used for
 * longest is forgotten first. A forgotten bucket is full when it is used again.
 */
export const RATE_CALLERS = 10_000;
/** The default capacity of an admission scope, in live commands. */
export const RESERVATIONS_PER_SCOPE = 10_000;
/** How long a subscription to a command's updates may wait for the command's admission. */
export const ADMITTED_WITHIN_MS = { default: 0, min: 0, max: 60_000 } as const;
/**
 * The age of a pending RPC at which an alert is sent. The range begins at the interval of the checks and ends at the
 * longest life of a command.
 */
export const OLDER_THAN_MS = { default: 30_000, min: 1_000, max: 600_000 } as const;
/**
 * The idempotency window: its default, and the range of its setting. The id of an ended command stays known for this
 * time, so that the command does not run again.
 */
export const TERMINAL_MS = 3600_000;
export const TERMINAL_RANGE_MS = { min: 60_000, max: 24 * 3600_000 } as const;
/** After a new instance has connected, the previous instance may still report on its commands for this time. */
export const REPLACED_GRACE_MS = 5_000;
/**
 * The most leaving links of one client on one node. Beyond this, the oldest is closed. The bound is low because each
 * end of a command checks all leaving links of its client.
 */
export const LEAVING_LINKS = 4;
export const WAITERS_PER_COMMAND = 8;
export const SIGHTINGS_PER_COMMAND = 8;
export const RECONCILE_MS = 1_000;
export const RECONCILE_BATCH = 256;
/** How long a graceful shutdown waits for running commands. */
export const DRAIN_MS = 10_000;
/** The time that an operator may give a node to drain. */
export const DRAIN_WITHIN_MS = { default: DRAIN_MS, min: 0, max: 600_000 } as const;
/**
 * In a drain, the time between the closing of two links, and the most time for closing all of them. Links are closed
 * one after another, so that the clients do not all reconnect at once.
 */
export const DRAIN_SPREAD_LINK_MS = 10;
export const DRAIN_SPREAD_MS = 5_000;
/**
 * A draining node closes a link this long after the link's last command ended, so that the client still gets the
 * acknowledgement.
 */
export const DRAIN_CLOSE_DELAY_MS = 20;
/**
 * A closing node waits this long for the shared store to return the state of its callers' commands. Then it answers the
 * remaining callers with the last known state.
 */
export const RELEASE_MS = 1_000;
/** How long an operator's request waits for a node to act, and the interval at which the request checks this. */
export const OPERATOR_CONFIRM_MS = 2_000;
export const OPERATOR_POLL_MS = 50;

// --- nodes -----------------------------------------------------------------------------------------------------------
export const NODE_LEASE_MS = 8_000;
export const NODE_BEAT_MS = 2_000;
/**
 * A node is silent if its last heartbeat is this old: two heartbeats are missing, and a second has passed. Shorter than
 * a lease.
 */
export const NODE_SILENT_MS = 5_000;
/** How long a dead node stays listed as stale after its lease ended. */
export const NODE_GONE_MS = 30_000;
/** A node's background loop counts as alive for this time after it last did its work. */
export const LOOP_ALIVE_MS = 5_000;
/**
 * The bounds of the writes that a node holds while its store is unavailable: their number, their bytes, the interval of
 * retries, and how many are tried at once.
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
/** The most bytes of a spill store without a configured total. Beyond this, payloads are refused with `store_full`. */
export const SPILL_BYTES = 1024 * 1024 * 1024;
/**
 * The shortest time between two searches for expired objects in a spill store in a directory or in memory. A write
 * starts the search. If a spill store in memory is full, every write does.
 */
export const SPILL_CLEAN_MS = 60_000;

// --- delivery --------------------------------------------------------------------------------------------------------
/** How many commands `/delivery/summary` samples to find the oldest times. */
export const DELIVERY_SAMPLE = 1000;
export const SCOPE_HOLDERS = 100;

// --- contexts, windows, workers --------------------------------------------------------------------------------------
export const CLIENT_CONTEXTS = 1000;
/** How many closed contexts of a client are remembered, so that no later context with the same id replaces them. */
export const LEFT_CONTEXTS = 256;
export const CLIENT_WINDOWS = 100;
export const WORKER_LIST = 1000;
export const TITLE_MAX_CHARS = 256;

// --- series of metrics -----------------------------------------------------------------------------------------------
/**
 * The most series in one answer, and the most points of each series. Without a step in the request, a series has at
 * most SERIES_POINTS_DEFAULT points.
 */
export const SERIES_LINES = 64;
export const SERIES_POINTS = 1000;
export const SERIES_POINTS_DEFAULT = 720;
/** The time window of series, in seconds: from one slot to everything that is recorded. */
export const SERIES_WINDOW_SECONDS = { default: 3600, min: 5, max: 24 * 3600 } as const;
/** How long a node waits for the series of other nodes, and the most characters of the answer that a node sends. */
export const SERIES_ASK_MS = 1_000;
export const SERIES_ANSWER_CHARS = 1024 * 1024;
/** The most named admission scopes that `/metrics` lists: those with the most reservations. */
export const SHOWN_SCOPES = 20;

// --- filters, samples and live feeds for operators -------------------------------------------------------------------
/** How many groups of failures an answer lists, the largest ones first. */
export const SHOWN_FAILURES = { default: 20, min: 1, max: 100 } as const;
/** The most labels in a filter, and the most characters of one label (`key=value`). */
export const LABELS_PER_FILTER = 8;
export const LABEL_MAX_CHARS = 256;
/** The most labels of one client that filters look at. */
export const LABELS_PER_CLIENT = 64;
/** The most characters of an error code that a client reports. */
export const ERROR_CODE_CHARS = 64;
/** The most characters of a filter's search text. */
export const FILTER_TEXT_CHARS = 128;
/** The most events per second of one `commandEvents` subscription. Further events are dropped and counted. */
export const COMMAND_EVENTS_PER_SECOND = 100;
/**
 * The interval at which a node announces to the others which command events it wants. An announcement is valid for
 * LISTENING_MS, so two of them may get lost.
 */
export const LISTENING_ANNOUNCE_MS = 5_000;
export const LISTENING_MS = 16_000;
/** Reconnects are counted in slots of this length. A count covers the slots of one hour. */
export const RECONNECT_SLOT_MS = 5 * 60_000;
export const RECONNECT_SLOTS = 12;
/** The most clients whose reconnects are counted in one slot of one partition. */
export const RECONNECT_CLIENTS = 20_000;
/** The most clients that `flapping` and `topClients` list. */
export const TOP_CLIENTS_MAX = 100;

// --- subscriptions and event streams ---------------------------------------------------------------------------------
/** The most events in a subscription's queue (documented: 100). If the queue is full, the oldest event is dropped. */
export const SUBSCRIPTION_QUEUE = 100;
export const SSE_PER_PRINCIPAL = 10;
export const SSE_PER_ADMIN = 200;
export const SSE_OPERATIONS = 100;
export const SSE_PING_MS = 20_000;
/** How long an event stream in single-connection mode stays reserved if it is not opened. */
export const SSE_RESERVATION_MS = 30_000;
/**
 * The approximate most characters of one chunk of an event stream. The events of one tick are merged up to this length.
 * Node buffers as many characters for a socket before it reports back-pressure, so a slow reader costs at most twice
 * this length in its socket, in addition to its queue.
 */
export const SSE_MERGE_CHARS = 64 * 1024;
/** An event stream is closed if its reader has read nothing for this time. */
export const SSE_STALL_MS = 5 * SSE_PING_MS;

// --- GraphQL documents -----------------------------------------------------------------------------------------------
export const QUERY_DEPTH = 12;
export const QUERY_TOKENS = 4000;
/**
 * The deepest nesting of braces, brackets and parentheses in a document, in selections and in argument values. JSON has
 * the same bound.
 */
export const QUERY_NESTING = JSON_DEPTH;
export const QUERY_ALIASES = 100;
export const QUERY_ROOT_FIELDS = 10;
export const QUERY_DIRECTIVES = 50;
export const QUERY_OPERATIONS = 50;
export const QUERY_FRAGMENTS = 50;
/** The most steps of the check for fields that cannot be merged. Each spread of a fragment counts its own steps. */
export const QUERY_MERGES = 10_000;
/** The most characters of a document, checked before it is parsed. Large values belong in variables. */
export const QUERY_CHARS = 64 * 1024;
/** The most ids that `nodes` accepts. */
export const NODE_IDS = 100;
/**
 * The most characters of a node id. The longest id is that of a message whose user id and stream suffix have their
 * greatest length.
 */
export const NODE_ID_CHARS = 4096;
/** The most validation errors that are reported for one document. */
export const QUERY_FAULTS = 10;
/**
 * The bounds of requests without a token: the most characters of a document, the same if introspection is open to
 * everyone, the most bytes of the body, and the token bucket of an address (requests per second, and capacity).
 */
export const ANONYMOUS_QUERY_CHARS = 256;
export const ANONYMOUS_INTROSPECTION_CHARS = 4 * 1024;
export const ANONYMOUS_BODY_BYTES = 16 * 1024;
export const ANONYMOUS_RATE = 5;
export const ANONYMOUS_BURST = 300;
export const QUERY_COST_USER = 20_000;
export const QUERY_COST_ADMIN = 500_000;
export const QUERY_MS = 10_000;
/** How many parsed and compiled documents are cached, and the most characters of a document that is cached. */
export const QUERY_CACHE = 500;
export const QUERY_CACHE_CHARS = 16 * 1024;

// --- reads and documents in progress ---------------------------------------------------------------------------------
/**
 * The most large reads of pages that run on the store at the same time: in total, and for one requester. One page has
 * up to PAGE_READ_BYTES, so at most 40 MiB are in transit. The same bounds hold for documents that cost more than
 * DOCUMENT_SMALL_COST.
 */
export const READ_TURNS = { atOnce: 8, perHolder: 2 } as const;
/**
 * A store ends a page of messages after this many bytes of payloads. The bound is above ANSWER_PAGE_BYTES, so a page
 * that is too large for an answer is cut at that bound first.
 */
export const PAGE_READ_BYTES = 5 * 1024 * 1024;
/**
 * The most cost of the documents that begin in one turn of the event loop. A more expensive document begins alone. A
 * unit of cost takes at most 2.5 microseconds, so such a turn takes at most 25 milliseconds.
 */
export const DOCUMENT_TURN_COST = 10_000;
/** A document that costs at most this much does not count in READ_TURNS. */
export const DOCUMENT_SMALL_COST = 1_000;
/**
 * The most bytes that one document remembers of its reads: as much as one user is guaranteed to advertise. A value
 * beyond this is read again for each field that needs it.
 */
export const READING_BYTES = 16 * 1024 * 1024;
/**
 * The most rows that one document loads from a store at the same time. Their answers may arrive together, and decoding
 * the row of a context takes about 8 microseconds.
 */
export const ROWS_LOADED_TOGETHER = 1_000;
/**
 * The most command records that the filters of one document scan in Redis, over all its pages: as many as one page.
 * 10,000 records take 60 ms of the relay's CPU and 150 ms of Redis' CPU. Each further page reads SCANNED_AT_LEAST
 * records and ends.
 */
export const SCANNED_TOGETHER = 10_000;
/** The number of records that each page of commands may always scan, so that its cursor moves on. */
export const SCANNED_AT_LEAST = 64;
/**
 * A page of the newest commands of a user or client reads only that user's or client's commands if they are at most
 * this many. Otherwise it reads those of all users, and may end before it finds one. One call reads the names, and one
 * the records.
 */
export const OWN_COMMANDS = 255;

// --- pending RPCs ----------------------------------------------------------------------------------------------------
/** The range of the filter for the age of pending RPCs. */
export const MIN_AGE_MS = { default: 0, min: 0, max: 86_400_000 } as const;
/** How long a node waits for another node's answer about the waits of its callers. */
export const WAITS_ASK_MS = 1_000;
/** The most characters of such an answer. */
export const WAITS_ANSWER_CHARS = 4 * 1024 * 1024;

// --- agents (MCP) ----------------------------------------------------------------------------------------------------
/** How long an agent's call waits for the end of its command. Common MCP hosts give up after a minute. */
export const AGENT_WAIT_MS = 45_000;
/** The interval of progress messages to an agent. */
export const AGENT_PROGRESS_MS = 5_000;
/** After an agent's connection closed, its command is cancelled unless an equal call arrives within this time. */
export const AGENT_HUNG_UP_MS = 10_000;
/** If the connection is reset within this time after an answer was written, the answer counts as lost. */
export const AGENT_ARRIVED_MS = 10_000;
/** How long after the end of a call its lost answer is given to an equal call. */
export const AGENT_UNARRIVED_MS = 600_000;
/** A call that still runs after the first time, or took longer than the second, may have been given up by its host. */
export const AGENT_STILL_RUNNING_MS = 10_000;
export const AGENT_LONG_CALL_MS = 30_000;
/** The most clients of a user that are searched for tools, and for the target of a call that names none. */
export const AGENT_CLIENTS = 1_000;
/** The most actions of a user that become tools of their own. */
export const AGENT_TOOLS = 300;
/** The most differing advertisements of one action whose texts and schemas are shown. */
export const AGENT_VARIANTS = 4;
/** How long a host may cache the list of tools if it has no event stream that announces changes. */
export const AGENT_LIST_TTL_MS = 5_000;
/** How long the tools of a user stay cached after the last request of the user's agents. */
export const AGENT_CATALOG_MS = 60_000;
/** The shortest time between two messages on one event stream that say that the list of tools changed. */
export const AGENT_LIST_CHANGED_MS = 1_000;
/** The longest name of a tool. Hosts put the server's name before it, and models accept 64 characters in total. */
export const AGENT_TOOL_NAME_CHARS = 40;
/** The longest description of a tool. */
export const AGENT_DESCRIPTION_CHARS = 1_024;
/** The longest schema of one tool in a list, the most characters of the schemas of one client, and of a whole list. */
export const AGENT_SCHEMA_CHARS = 16 * 1024;
export const AGENT_CLIENT_SCHEMAS_CHARS = 256 * 1024;
export const AGENT_SCHEMAS_CHARS = 1024 * 1024;
/** The most members and items of an advertised schema, and its deepest nesting of schemas. */
export const AGENT_SCHEMA_PARTS = 4_000;
export const AGENT_SCHEMA_LEVELS = 24;
/** The most schemas of which a tool's listed schema consists, and its deepest nesting. Hosts refuse deeper ones. */
export const AGENT_LISTED_SCHEMAS = 500;
export const AGENT_LISTED_LEVELS = 10;
/** The longest description in a listed schema, and the most characters of the notes after it, such as a default. */
export const AGENT_SCHEMA_TEXT_CHARS = 600;
export const AGENT_SCHEMA_NOTES_CHARS = 240;
/** The most values, and the most characters of one value, with which a schema lists an enumeration as such. */
export const AGENT_ENUM_VALUES = 250;
export const AGENT_ENUM_CHARS = 100;
/** The most actions of a user that find_actions searches. */
export const AGENT_SEARCHED_ACTIONS = 2_000;
/** The most characters, and the most words, of a query of find_actions. */
export const AGENT_QUERY_CHARS = 128;
export const AGENT_QUERY_WORDS = 8;
/** The most members and items, and the most characters, of an agent's message without the arguments of its call. */
export const AGENT_MESSAGE_PARTS = 1_000;
export const AGENT_MESSAGE_CHARS = 64 * 1024;
/** The longest result of a call that is sent in full. */
export const AGENT_RESULT_CHARS = 256 * 1024;
/** The most actions that find_actions returns. */
export const AGENT_FOUND_ACTIONS = 100;
/** The most clients of one action that describe_action returns, and that the refusal `ambiguous_client` names. */
export const AGENT_DESCRIBED_CLIENTS = 20;
export const AGENT_SHOWN_CLIENTS = 20;
/** The most contexts of a client that list_clients returns. */
export const AGENT_SHOWN_CONTEXTS = 50;

// --- sites, sessions and grants --------------------------------------------------------------------------------------
export const SITES_PER_USER = 100;
export const SESSIONS_PER_SITE = 1000;
export const GRANTS_PER_SESSION = 100;
/** The most event names, and the most actions, that a site's definition or a grant may list. */
export const SITE_NAMES = 256;
export const SESSION_TTL_SECONDS = { default: 3600, min: 1, max: 24 * 3600 } as const;
/** How long an ended session is remembered. Until then it is reported as ended instead of unknown. */
export const SESSION_KEPT_MS = 3600_000;
export const TICKET_MS = 30_000;
/** The most tickets of one session that were not redeemed yet. */
export const SESSION_TICKETS = 100;
/**
 * The most redeemed tickets of one session with which a stream may reconnect. Beyond this, the one that was redeemed
 * first is dropped.
 */
export const SESSION_TICKETS_REDEEMED = 1000;
/** The longest time between two checks whether a session still permits an open event stream. */
export const SESSION_WATCH_MS = 1_000;
