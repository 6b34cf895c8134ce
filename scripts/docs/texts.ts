/** The descriptions of settings in docs/settings.md and of limits in docs/limits.md. */
import { SETTINGS_OF_SHARE } from '../../src/settings/share-settings.ts';
import type { SettingName } from '../../src/settings.ts';

/**
 * The description of each limit in core/limits.ts, in the order of docs/limits.md. Limits that only tune performance
 * are left out.
 */
export const LIMIT_TEXTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'Pages and answers': {
    PAGE_DEFAULT: 'rows of a page, by default',
    PAGE_MAX: 'rows of a page, at most',
    ANSWER_PAGE_BYTES: 'one page; beyond, it ends early with a cursor and `limit_reached`',
    ANSWER_BYTES: 'all lists of one answer; beyond, they end early too',
    ANSWER_SPILL_BYTES: 'large payloads that one answer fetches; beyond, they stay redacted',
    ACTION_SAMPLE: 'advertisements in `/actions`',
    ACTION_SAMPLE_CONNECTIONS: 'connections that `/actions` reads',
    ACTION_SAMPLE_BYTES: 'the answer of `/actions`',
    RAW_SAMPLE: 'messages in the raw sample of history',
    RAW_SAMPLE_BYTES: 'the raw sample of history',
    COUNT_SCAN: 'rows that a count scans; beyond, it is reported as incomplete',
    WORKER_LIST: 'rows of each list of workers',
    TOP_CLIENTS_MAX: 'clients that `flapping` and `topClients` list',
    RECONNECT_CLIENTS: 'clients whose reconnects are counted in five minutes',
    COMMAND_EVENTS_PER_SECOND: 'events of one `commandEvents` in a second; beyond, they are counted in `missed`',
    LABELS_PER_FILTER: 'labels in one filter',
    LABEL_MAX_CHARS: 'characters of one label, `key=value`',
    LABELS_PER_CLIENT: 'labels of one client that filters see',
    FILTER_TEXT_CHARS: 'characters of the text that a filter looks for',
  },
  Metrics: {
    SERIES_LINES: 'series in one answer',
    SERIES_POINTS: 'points of one series',
    SERIES_WINDOW_SECONDS: 'how far `series` looks back',
    SERIES_ASK_MS: 'time for another node to answer for `series`; after it, the node is named as silent',
    SHOWN_SCOPES: 'admission scopes that `/metrics` names',
  },
  Names: {
    USER_MAX_CHARS: 'characters of a user id',
    ID_MAX_CHARS: 'characters of any other id',
    STREAM_SUFFIX_SEGMENTS: 'segments of the suffix of a stream',
    TRACE_MAX_CHARS: 'characters of a trace id',
    MAX_REASON: 'characters of the reason of a cancellation or a disconnect',
    REVEAL_REASON_MIN: 'characters of the reason for revealing a payload, at least',
    REVEALS_PER_HOUR: 'payloads that one administrator reveals with a reason in an hour',
    REVOCATIONS_MAX: 'revocations that are kept, for one that names a single token',
    REVOCATIONS_MAX_WIDE: 'revocations that are kept, for one that names a user, a client or a time of issue',
    REVOCATIONS_PER_USER: 'of these, what one user may have set',
    REVOCATIONS_PER_USER_WIDE: 'of these, what one user may have set, for one that names no single token',
    REVOCATIONS_OF_ADMINS: 'of these, what is left to administrators',
    REVOCATION_KEEP_MS: 'a revocation is kept',
    REVOKE_WITHIN_MS: 'another node takes to end what a revocation covers; then it is named as silent',
    PAUSES: 'pauses',
    PAUSES_PER_USER: 'of these, what one user and its clients may have set',
    PAUSES_OF_PERSONS: 'of these, only by the user, not by its clients',
    PAUSES_PER_HOUR: 'pauses of one user in an hour, and as many times that it resumes',
    CLIENT_RESUMES_AT_ONCE: 'times at once that the clients of one user resume, or replace their pauses',
    CLIENT_RESUMES_PER_SECOND: 'times in a second afterwards',
    ENROLMENTS_OPEN: 'enrolments of devices that are open',
    ENROLMENTS_OF_NETWORK: 'of these, what one network has',
    ENROLMENT_MS: 'an enrolment is open',
    ENROLMENTS_BEGUN: 'enrolments that are begun in that time, on one node',
    ENROLMENTS_BEGUN_OF_NETWORK: 'of these, what one network, or one person with a token, begins',
    DEVICE_TOKENS: 'tokens that one device gets in the same time',
    AUDIT_ROWS: 'rows of the audit (AUDIT_MAX_ROWS)',
    AUDIT_KEEP_MS: 'a row of the audit is kept (AUDIT_DAYS)',
  },
  Sizes: {
    MAX_FRAME_BYTES: 'one frame of a link',
    MAX_BODY_BYTES: 'one HTTP body (MAX_BODY_BYTES)',
    INLINE_PAYLOAD_BYTES: 'a payload that is larger is kept in the spill store',
    CLIENT_ACTIONS: 'actions that one client advertises',
    ACTION_BYTES: 'one advertised action',
    METADATA_BYTES: 'the metadata of one client',
    JSON_DEPTH: 'levels of nested JSON',
    ENVELOPE_PARTS: 'members and items of one request or frame besides its payloads',
  },
  Links: {
    HELLO_MS: 'from the opening of a link to its `hello`',
    KEEP_ALIVE_MS: 'an HTTP connection is idle (KEEP_ALIVE_MS)',
    PING_MS: 'between two pings (PING_MS)',
    STALE_MS: 'without a sign of life: the connection is stale',
    DEAD_MS: 'without a sign of life: the link is closed',
    FORGET_MS: 'a disconnected connection stays listed',
    IN_FLIGHT: 'dispatched commands of one link that have not ended',
    QUEUE_PER_CLIENT: 'commands that wait for one client',
    CALLER_UNANSWERED: "unanswered requests of one caller's link",
    FRAME_RATE: 'unsolicited frames of one link in a second',
    FRAME_BURST: 'unsolicited frames of one link at once',
    BAD_FRAMES: 'malformed frames within a minute; then the link is closed',
    BACK_PRESSURE_BYTES: 'unread bytes of a link; beyond, nothing is dispatched on it',
    BACK_PRESSURE_CLOSE_BYTES: 'unread bytes of a link; beyond, it is closed',
    INBOUND_BYTES_PER_SECOND:
      'what one user sends in a second; beyond, links are read more slowly and requests are answered 429',
    CLIENT_CONTEXTS: 'contexts that one client reports',
    CLIENT_WINDOWS: 'windows that one client reports',
  },
  Commands: {
    CONNECT_WITHIN_MS: '`connect_within_ms`',
    RESPOND_WITHIN_MS: '`respond_within_ms`',
    AWAIT_WITHIN_MS: '`within_ms` of an await',
    RESERVATIONS_PER_SCOPE: 'live commands of one admission scope, unless a policy file says otherwise',
    RATE_CALLERS: 'callers whose buckets one rate rule of the policy remembers in direct mode',
    WAITERS_PER_COMMAND: 'callers that wait for one command',
    SIGHTINGS_PER_COMMAND: 'sightings that are kept of one command',
    TERMINAL_MS: 'the id of an ended command is known (IDEMPOTENCY_WINDOW_MS)',
    REPLACED_GRACE_MS: 'a replaced instance may still answer',
    DRAIN_WITHIN_MS: '`within_ms` of a drain',
  },
  'Retained history': {
    STREAM_MESSAGES: 'messages of one stream (STREAM_MAX_MESSAGES)',
    STREAMS_PER_USER: 'streams of one user, besides the link history',
    LINK_MESSAGES: 'rows of the link history of one user (`<user>/links`); beyond, the oldest are removed',
    LINK_BYTES:
      'link histories of all users in direct mode; beyond, rows of the user who is most over their guarantee are removed',
    LINK_BYTES_GUARANTEE: 'of these, the guarantee of each user',
    RETENTION_MS: 'messages and results are kept (RETENTION_MS)',
    PROGRESS_ROW_MS: 'one row of progress of a command in this time',
    INGEST_BATCH: 'messages in one request to `/ingest`',
    DEDUP_TTL_MS: 'a message id is known, so that a repeated one is a duplicate',
    DEDUP_WINDOW_SECONDS: 'the window of `/dedup/stats`',
  },
  'Nodes of shared mode': {
    NODE_LEASE_MS: 'the lease of a node',
    NODE_SILENT_MS: 'without a heartbeat: the node is reported as silent',
    NODE_GONE_MS: 'a lost node stays listed',
    RETRY_QUEUE_ENTRIES: 'writes that a node keeps while Redis is unavailable',
    RETRY_QUEUE_BYTES: 'their bytes',
  },
  Sites: {
    SITES_PER_USER: 'sites of one user',
    SESSIONS_PER_SITE: 'sessions of one site',
    GRANTS_PER_SESSION: 'grants of one session',
    SITE_NAMES: 'event names, and actions, of a site or a grant',
    SESSION_TTL_SECONDS: 'the life of a session',
    TICKET_MS: 'from a ticket to its first use',
    SESSION_TICKETS: 'unused tickets of one session',
    SESSION_TICKETS_REDEEMED: 'used tickets of one session that can still be used to reconnect',
  },
  Agents: {
    AGENT_WAIT_MS: 'a call waits for the end; then it says `still_running`',
    AGENT_PROGRESS_MS: 'between two messages of progress',
    AGENT_HUNG_UP_MS: 'the connection of a call was cut: it waits for an equal one before it is cancelled',
    AGENT_ARRIVED_MS: 'after an answer: a reset of its connection shows that it was lost',
    AGENT_UNARRIVED_MS: 'an answer that was lost is given to an equal call',
    AGENT_STILL_RUNNING_MS: 'a call still runs: an equal one that runs too names it',
    AGENT_LONG_CALL_MS: 'a call took longer: an equal one that runs names it',
    AGENT_CLIENTS:
      'clients of a user that are searched for actions; beyond, answers say so and a call must name its client',
    AGENT_TOOLS: 'actions of a user that have a tool of their own',
    AGENT_VARIANTS:
      'variants of one action, which clients advertise in different words, that are looked at; of more, no text is shown, and with another schema the tool takes any members',
    AGENT_LIST_TTL_MS: 'a host may keep the list of tools',
    AGENT_CATALOG_MS: 'the tools of a user are remembered after the last request of an agent of the user',
    AGENT_LIST_CHANGED_MS: 'between two messages of one stream that the list of tools has changed',
    AGENT_TOOL_NAME_CHARS: 'characters of the name of a tool',
    AGENT_DESCRIPTION_CHARS: 'characters of the description of a tool',
    AGENT_SCHEMA_CHARS: 'characters of the schema of a tool; beyond, the tool takes any members',
    AGENT_CLIENT_SCHEMAS_CHARS: 'characters of the schemas of one client in a list; beyond, tools take any members',
    AGENT_SCHEMAS_CHARS: 'characters of the schemas of all tools of a list; beyond, tools take any members',
    AGENT_SCHEMA_PARTS: 'members and items of an advertised schema; beyond, the tool takes any members',
    AGENT_SCHEMA_LEVELS: 'levels of schemas in an advertised one; beyond, the tool takes any members',
    AGENT_LISTED_SCHEMAS: 'schemas in the schema of a tool; beyond, the tool takes any members',
    AGENT_LISTED_LEVELS: 'levels of schemas in the schema of a tool; beyond, the tool takes any members',
    AGENT_SCHEMA_TEXT_CHARS: 'characters of a text of a client in a schema; a longer one is cut',
    AGENT_SCHEMA_NOTES_CHARS: 'characters of what that text says besides, such as a default; more is cut',
    AGENT_ENUM_VALUES: 'values of an enumeration in a schema; of more, the description names the first',
    AGENT_ENUM_CHARS: 'characters of such a value; with a longer one, the description names the first',
    AGENT_SEARCHED_ACTIONS: 'actions of a user among which `find_actions` searches',
    AGENT_QUERY_CHARS: 'characters of a query of `find_actions`',
    AGENT_QUERY_WORDS: 'words of a query of `find_actions`',
    AGENT_MESSAGE_PARTS: 'members and items of a message, without the arguments of its call',
    AGENT_MESSAGE_CHARS: 'characters of a message, without the arguments of its call',
    AGENT_RESULT_CHARS: 'characters of a result; beyond, it is read in parts',
    AGENT_FOUND_ACTIONS: 'actions that `find_actions` shows',
    AGENT_DESCRIBED_CLIENTS: 'clients that `describe_action` shows',
    AGENT_SHOWN_CLIENTS: 'clients that the refusal `ambiguous_client` names',
    AGENT_SHOWN_CONTEXTS: 'contexts of one client that `list_clients` shows',
  },
  'GraphQL documents': {
    QUERY_DEPTH: 'depth',
    QUERY_CHARS: 'characters',
    QUERY_TOKENS: 'tokens',
    QUERY_NESTING: 'nested braces, brackets and parentheses',
    QUERY_ALIASES: 'aliases',
    QUERY_ROOT_FIELDS: 'root fields',
    QUERY_DIRECTIVES: 'directives',
    QUERY_FRAGMENTS: 'fragments',
    QUERY_OPERATIONS: 'operations',
    QUERY_MERGES: 'steps of merging fields',
    QUERY_COST_USER: 'cost, for a user',
    QUERY_COST_ADMIN: 'cost, for an administrator',
    DOCUMENT_TURN_COST: 'cost of the documents that begin in one turn of the event loop; a dearer one begins alone',
    DOCUMENT_SMALL_COST: 'cost up to which documents in progress are bounded only by the share `documents`',
    READING_BYTES: 'what one document remembers of its reads; beyond, rows are read again for each field',
    SCANNED_TOGETHER:
      'records of commands that the filters of one document scan over Redis; beyond, its pages end early',
    QUERY_MS: 'time to the answer; after it, nothing more is read',
    SUBSCRIPTION_QUEUE: 'events that the queue of a subscription holds; the oldest is dropped and counted',
    SSE_PER_PRINCIPAL: 'event streams of one user',
    SSE_PER_ADMIN: 'event streams of one administrator',
    SSE_OPERATIONS: 'operations on one stream',
  },
  'Connections without a token': {
    UNAUTHENTICATED_SOCKETS_PER_ADDRESS: 'of one address (IPv6: of a /64)',
    UNAUTHENTICATED_SOCKETS: 'in all, or what the limit of open files leaves for them ([shares](shares.md))',
    READ_NOTHING_MS: 'nothing of an answer is read: the connection is cut',
    ANONYMOUS_RATE: 'GraphQL requests of one address in a second',
    ANONYMOUS_BURST: 'GraphQL requests of one address at once',
    ANONYMOUS_BODY_BYTES: 'the body of a GraphQL request',
    ANONYMOUS_QUERY_CHARS: 'characters of a GraphQL document; only `__typename` is answered',
  },
};

type OwnSetting = Exclude<SettingName, (typeof SETTINGS_OF_SHARE)[keyof typeof SETTINGS_OF_SHARE][number]>;

/**
 * The descriptions by group and setting, in the order of docs/settings.md. The settings of a share are described with
 * the share instead.
 */
export const SETTING_TEXTS: Readonly<Record<string, Partial<Readonly<Record<OwnSetting, string>>>>> = {
  Listening: {
    HOST: 'the address to listen on; credentials are required for every address except loopback',
    PORT: 'the port to listen on; 0 takes a free one',
    BASE_PATH: 'the path under which everything is served, such as `/callboard`',
    ALLOWED_ORIGINS:
      'origins of pages that may use the relay besides its own, comma-separated and exact: of sites, of extensions (`chrome-extension://…`), of app shells (`capacitor://localhost`), or `null`',
    TRUST_PROXY:
      'take the forwarded headers of the proxies in front: `true` for one, or [how many](proxies.md#which-headers-count) append to them',
    KEEP_ALIVE_MS:
      'how long an HTTP connection may be idle; [more than the load balancer’s own time](proxies.md#load-balancers)',
    PING_MS: 'between two pings over a link or an event stream; less than the idle time of each proxy between',
    TLS_CERT:
      'a file with the certificate and its chain (PEM), if the relay itself speaks TLS; read again when it changes',
    TLS_KEY: 'the file with its key (PEM)',
    NODE_ID: 'the name of this node, unique in a deployment',
    CONSOLE: 'serves the console, a page for operators and users, at `/console/`',
    MCP: 'serves [agents](agents.md) at `/mcp`; needs the package `@modelcontextprotocol/server`; on in a trial where it is installed',
    LABEL: 'a name of the deployment for people, such as `staging`; tools show it',
    TRACE_URL:
      'the address of a trace, such as `https://traces.example/trace/{traceId}`; the console then links the trace of a call ([tracing](tracing.md))',
    LOG_LEVEL: 'the least level of the lines on standard error',
  },
  Credentials: {
    ADMIN_TOKEN:
      'tokens of administrators, comma-separated; `name=token` (16 characters or more) puts the name into logs',
    SECRET:
      'signs and checks tokens of users (HS256); at least 32 bytes; a second line is [the secret before it](tokens.md#replace-a-secret)',
    METRICS_TOKEN: 'reads `/metrics` and nothing else, for Prometheus; at least 32 characters',
    JWKS_URL: 'the published keys of an identity provider; ISSUER and AUDIENCE are then required',
    ISSUER: 'the `iss` that every JWT must have; of several, comma-separated, one',
    AUDIENCE: 'the `aud` that every JWT must have; of several, comma-separated, one',
    AUDIENCE_FROM_CLIENT_ID: 'for tokens of JWKS_URL: `client_id` counts as the audience of a token without `aud`',
    USER_CLAIM:
      'for tokens of JWKS_URL: the claim that names the user, such as `oid` or `profile.id`; of several, the first that is present ([tokens](tokens.md))',
    FOLD_USERS: 'for tokens of JWKS_URL: makes users canonical, such as email addresses with capital letters',
    SCOPE_CLAIM:
      'for tokens of JWKS_URL: the claim with scopes, such as `realm_access.roles`; of several, the first that is present',
    SCOPE_PREFIX: 'for tokens of JWKS_URL: what the names of scopes begin with',
    AUDIT_FILE:
      'the file of [the audit](security.md#audit) in direct mode; needs AUDIT_KEY or SECRET; without it the audit is kept in DATA_DIR or in memory',
    AUDIT_KEY:
      'signs the rows of the audit; at least 32 bytes; further lines are [earlier keys](security.md#audit); else derived from SECRET',
    AUDIT_DAYS: 'days that a row of the audit is kept',
    AUDIT_MAX_ROWS: 'rows of the audit that are kept; 100,000 take about 40 MB of memory in direct mode',
    REVEAL:
      'how administrators read payloads: `argument` (by arguments of listings, too), `mutation` (by `revealPayload` alone, with a reason) or `off`',
    POLICY_FILE: 'a file of rules and capacities ([security](security.md#policy)); read again when it changes',
    INTROSPECTION: 'who may read the GraphQL schema from the relay',
    TRACE_IDS: 'lets [spans](tracing.md) name users and clients, which are personal data',
    RAW_MESSAGES: 'lets administrators read the raw sample of history',
  },
  'What is kept': {
    RETENTION_MS: 'how long history and the results of commands are kept',
    STREAM_MAX_MESSAGES: 'messages of one stream; older ones are evicted',
    IDEMPOTENCY_WINDOW_MS: 'how long after its end the id of a command is known, and runs at most once',
    DATA_DIR:
      '[the directory](durable.md) in which one process keeps what it knows; without it a restart forgets everything',
    DATA_SYNC:
      'when records are synced to the disk: after so many milliseconds at most, `always` before an answer, or `off`; says what [a power loss](durable.md) may lose',
    SPILL_DIR:
      'the directory of payloads over 16 KiB; without it they are kept in DATA_DIR, in memory, or in Redis in shared mode',
  },
  'What one requester may send': {
    MAX_BODY_BYTES: 'the body of one HTTP request',
    INBOUND_BYTES_PER_SECOND:
      'what one user may send in a second, over links and HTTP bodies together; administrators are not limited',
    UNAUTHENTICATED_SOCKETS_PER_ADDRESS:
      'open connections of one address without a valid token; not applied with TRUST_PROXY',
    FAST_PATH: '`--no-fast-path`: graphql-js runs every request; the answers have the same bytes',
  },
  'Shared mode': {
    REDIS_URL:
      '`redis://` or `rediss://`; `unix:///path`; `redis+sentinel://host:port,host:port/master`; `redis+cluster://host:port,host:port`',
    REDIS_TLS_CA:
      'a file with the authorities that sign the certificates of Redis (PEM); default: those that Node trusts',
    REDIS_TLS_CERT: 'a file with the certificate by which Redis knows the relay (PEM)',
    REDIS_TLS_KEY: 'the file with its key (PEM)',
    NAMESPACE: 'separates deployments in one Redis',
    STORE: 'who decides over Redis: relays that each own a part of the users, or Redis itself, by scripts',
    ADVERTISE_URL:
      'the address at which clients reach this relay and no other, such as `wss://relay-1.example/connect`: [clients go to the relay that owns their user](shared-mode.md#homes)',
    PARTITIONS: 'fixed for a namespace; spreads it over the masters of a cluster by admission scope',
    DURABILITY: 'the least durability that Redis must have; unset: what Redis reports, except `memory`',
    STRICT_MIGRATION: 'refuses to start while the legacy keys hold anything',
    LEGACY_COMMAND_STREAM: 'a key of an earlier system, which is only read: `/delivery/summary` shows its depth',
    LEGACY_PENDING: 'another such key',
  },
};
