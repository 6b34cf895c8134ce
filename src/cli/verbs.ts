/** The table of all operator verbs and their flags. */
import { ACCESS_VERBS } from './access-verbs.ts';
import { CURSOR_FLAG, PAGE_FLAGS, YES_FLAG } from './flags.ts';
import type { Flag, Verb } from './verb.ts';
import { wordsOf } from './enum-words.ts';

const USER_FLAG = { userId: 'Only this user' };
const CLIENT_FLAGS = { ...USER_FLAG, clientId: 'Only this client' };
/** The flags that select callers. */
const CALLER_FLAGS = {
  caller: 'Only this caller: the name of an administrator, or the id of a user or a grant',
  callerKind: { help: 'Only this kind of caller', values: wordsOf('CommandCallerKind') },
};
/** Not just `--context`, because that flag selects the relay. */
const CONTEXT_FLAG = { contextId: 'Only calls that name this context of their client' };
const WAIT_FLAGS = {
  ...CLIENT_FLAGS,
  ...CONTEXT_FLAG,
  ...CALLER_FLAGS,
  older: 'Only waits older than this, such as 10s',
};
const TIME_FLAGS = {
  since: 'Only later than this: a time such as 2026-01-31T12:00:00Z, or an age such as 10m',
  until: 'Only earlier than this: a time or an age',
};
/** The flag of verbs that print events until they are interrupted. */
const COUNT_FLAG = { count: 'End after this many lines' };

const PARAMS = { params: 'File with the parameters as JSON; - reads standard input' };
const PLACE = { contextId: 'Id of the context, such as a tab, in which the command may run, and in no other' };
const BUDGETS = {
  connect: 'How long to wait for the client to connect, such as 5s (default 0s)',
  respond: 'How long the client may take, such as 30s (default 30s)',
};
/** The flag of verbs that wait for a call. */
const PROGRESS_FLAG: Readonly<Record<string, Flag>> = {
  progress: { help: 'Print each report of progress on standard error', on: true },
};
const CLIENT_TYPE = { clientType: { help: 'Only this kind of client', values: wordsOf('ClientType') } };
const KIND = { help: 'Only these kinds, separated by commas', values: wordsOf('MessageKind'), many: true } as const;
const CALL_ARGS = ['user/client', 'action', 'params...'];
const CALL_ADDRESS = ['user/client/command'];
const CLIENT_ADDRESS = ['user/client'];
const TOKEN_FLAGS = ['tokenFile', 'tokenCommand'] as const;

/**
 * All verbs for operators. The command line, its help, its shell completion and the table in docs/cli.md are made from
 * this list.
 */
export const VERBS: readonly Verb[] = [
  // The relay itself: its state, its nodes and its capacity.
  {
    name: 'status',
    brief: 'Show the state of the deployment; exits with 1 if something needs a person',
    load: async () => (await import('./run/status.ts')).status,
  },
  {
    name: 'top',
    brief: 'Show rates and the busiest clients, again and again',
    flags: {
      sort: { help: 'Which clients come first (default inflight)', values: ['inflight', 'queued', 'wait'] },
      interval: 'How often (default 2s)',
      ...COUNT_FLAG,
    },
    load: async () => (await import('./run/status.ts')).top,
  },
  {
    name: 'nodes ls',
    brief: 'List nodes of the deployment',
    flags: PAGE_FLAGS,
    load: async () => (await import('./run/status.ts')).nodesLs,
  },
  {
    name: 'nodes drain',
    brief: 'Make a node take no new work and close its links',
    args: ['node'],
    flags: {
      within: 'How long live commands may take to end (default 10s)',
      reason: 'Why, for the audit',
      ...YES_FLAG,
    },
    examples: ["nodes drain node-a --within 60s --reason 'a new kernel' --yes"],
    load: async () => (await import('./run/status.ts')).nodesDrain,
  },
  {
    name: 'capacity ls',
    brief: 'List admission scopes that hold reservations',
    flags: PAGE_FLAGS,
    load: async () => (await import('./run/status.ts')).capacityLs,
  },
  ...ACCESS_VERBS,
  {
    name: 'doctor',
    brief: 'Check settings, contexts, token and relay, one line each',
    load: async () => (await import('./run/status.ts')).doctor,
  },
  // Clients, users, advertised actions, execution contexts, and sites.
  {
    name: 'clients ls',
    brief: 'List clients that are connected, or were until lately',
    flags: {
      ...USER_FLAG,
      status: { help: 'Only this status', values: wordsOf('ConnectionStatus') },
      ...CLIENT_TYPE,
      action: 'Only clients that advertise this action',
      text: 'Only where an id, or the value of a label, contains this',
      label: { help: 'Only with this label, as key=value', many: true },
      nodeId: 'Only this node',
      ...PAGE_FLAGS,
    },
    examples: ['clients ls --status stale -o ids', 'clients ls --client-type browser --label room=12'],
    load: async () => (await import('./run/clients.ts')).clientsLs,
  },
  {
    name: 'clients get',
    brief: 'Show one client',
    args: CLIENT_ADDRESS,
    load: async () => (await import('./run/clients.ts')).clientsGet,
  },
  {
    name: 'clients actions',
    brief: 'List the actions that a client advertises',
    args: CLIENT_ADDRESS,
    load: async () => (await import('./run/clients.ts')).clientsActions,
  },
  {
    name: 'clients flapping',
    brief: 'List the clients that reconnected most in the last hour',
    flags: { limit: 'Most rows, 1 to 1000 (default 100)' },
    load: async () => (await import('./run/clients.ts')).clientsFlapping,
  },
  {
    name: 'clients watch',
    brief: 'Print changes of connections from now on',
    flags: { ...USER_FLAG, ...COUNT_FLAG },
    load: async () => (await import('./run/clients.ts')).clientsWatch,
  },
  {
    name: 'clients disconnect',
    brief: 'Close the link of a client, which may connect again at once',
    args: CLIENT_ADDRESS,
    flags: { reason: 'Why, for the audit', ...YES_FLAG },
    load: async () => (await import('./run/clients.ts')).clientsDisconnect,
  },
  {
    name: 'users ls',
    brief: 'List users',
    flags: PAGE_FLAGS,
    load: async () => (await import('./run/clients.ts')).usersLs,
  },
  {
    name: 'users get',
    brief: 'Show a user: connections, streams and waits',
    args: ['user'],
    load: async () => (await import('./run/clients.ts')).usersGet,
  },
  {
    name: 'actions ls',
    brief: 'List a sample of the actions that connected clients advertise',
    args: ['action?'],
    load: async () => (await import('./run/clients.ts')).actionsLs,
  },
  {
    name: 'places ls',
    brief: 'List execution contexts, or browser windows, that clients report',
    flags: {
      kind: { help: 'What to list (default context)', values: ['context', 'window'] },
      ...CLIENT_FLAGS,
      ...CLIENT_TYPE,
      ownership: { help: 'Only for this use', values: wordsOf('Ownership') },
      status: 'Only this status: active, idle, closed or stale; of windows open, stale or closed',
      windowId: 'Only contexts in this window',
      ...PAGE_FLAGS,
    },
    load: async () => (await import('./run/clients.ts')).placesLs,
  },
  {
    name: 'sites ls',
    brief: 'List cooperative sites',
    flags: { owner: 'Only sites of this user', ...PAGE_FLAGS },
    load: async () => (await import('./run/clients.ts')).sitesLs,
  },
  {
    name: 'sites get',
    brief: 'Show one site',
    args: ['owner/site'],
    load: async () => (await import('./run/clients.ts')).sitesGet,
  },
  // Calls and waiting callers.
  {
    name: 'call',
    brief: 'Invoke an action of a client and wait for its end',
    args: CALL_ARGS,
    flags: {
      ...PARAMS,
      ...PLACE,
      id: 'Id of the command; a repeated id never runs twice',
      ...BUDGETS,
      ...PROGRESS_FLAG,
      cancelOnInterrupt: { help: 'On an interruption, cancel the command instead of leaving it running', on: true },
    },
    examples: ['call alice/desk lamp.set on:=true colour=warm --connect 5s --respond 30s'],
    load: async () => (await import('./run/calls.ts')).call,
  },
  {
    name: 'preflight',
    brief: 'Ask what would refuse a call; nothing is admitted or written',
    args: CALL_ARGS,
    flags: { ...PARAMS, ...PLACE, id: 'Id of the command', ...BUDGETS },
    examples: ['preflight alice/desk lamp.set on:=true'],
    load: async () => (await import('./run/calls.ts')).preflight,
  },
  {
    name: 'calls ls',
    brief: 'List calls that the relay tracks, newest first',
    flags: {
      ...CLIENT_FLAGS,
      ...CONTEXT_FLAG,
      action: 'Only this action',
      outcome: { help: 'Only this outcome', values: wordsOf('Outcome') },
      stage: { help: 'Only this stage', values: wordsOf('Stage') },
      code: 'Only this code of an error, such as handler_failed',
      ...CLIENT_TYPE,
      ...CALLER_FLAGS,
      label: { help: 'Only clients with this label, as key=value', many: true },
      nodeId: 'Only this node',
      ...TIME_FLAGS,
      order: { help: 'newest first, or in order of the key (default newest)', values: wordsOf('CommandOrder') },
      ...PAGE_FLAGS,
    },
    examples: ['calls ls --outcome outcome_unknown --since 1h', 'calls ls --label room=12 -o jsonl --all'],
    load: async () => (await import('./run/calls.ts')).callsLs,
  },
  {
    name: 'calls find',
    brief: 'Find calls by their id, the last eight characters of it, or their trace id',
    args: ['id'],
    flags: CURSOR_FLAG,
    examples: ['calls find 9f3c2b1a'],
    load: async () => (await import('./run/calls.ts')).callsFind,
  },
  {
    name: 'calls failures',
    brief: 'Group calls that failed, the largest groups first',
    flags: {
      by: {
        help: 'What they are grouped by, separated by commas (default action,code)',
        values: wordsOf('FailureKey'),
        many: true,
      },
      ...CLIENT_FLAGS,
      ...CONTEXT_FLAG,
      action: 'Only this action',
      code: 'Only this code of an error, such as handler_failed',
      nodeId: 'Only this node',
      ...CALLER_FLAGS,
      outcome: {
        help: 'Only these outcomes, separated by commas (default failed,expired,outcome_unknown)',
        values: wordsOf('Outcome'),
        many: true,
      },
      ...TIME_FLAGS,
    },
    examples: ['calls failures --by node --since 15m'],
    load: async () => (await import('./run/calls.ts')).callsFailures,
  },
  {
    name: 'calls get',
    brief: 'Show everything that is proven about a call, by its address, or by an id as for find',
    args: CALL_ADDRESS,
    load: async () => (await import('./run/calls.ts')).callsGet,
  },
  {
    name: 'calls await',
    brief: 'Wait for the end of a call',
    args: CALL_ADDRESS,
    flags: { within: 'How long to wait, such as 30s (default 30s)', ...PROGRESS_FLAG },
    load: async () => (await import('./run/calls.ts')).callsAwait,
  },
  {
    name: 'calls cancel',
    brief: 'Cancel a call',
    args: CALL_ADDRESS,
    flags: { reason: 'Why, for the record and the client' },
    load: async () => (await import('./run/calls.ts')).callsCancel,
  },
  {
    name: 'calls tail',
    brief: 'Print what happens to calls from now on',
    flags: {
      ...CLIENT_FLAGS,
      action: 'Only this action',
      outcome: { help: 'Only ends with these outcomes, separated by commas', values: wordsOf('Outcome'), many: true },
      ...CLIENT_TYPE,
      ...COUNT_FLAG,
    },
    examples: ['calls tail --outcome outcome_unknown,expired'],
    load: async () => (await import('./run/calls.ts')).callsTail,
  },
  {
    name: 'calls reveal',
    brief: 'Show one payload of a call, for a reason that the audit keeps',
    args: CALL_ADDRESS,
    flags: {
      reason: 'Why it is looked at; required',
      subject: { help: 'Which payload (default result)', values: ['params', 'result', 'message'] },
      message: 'Id of the retained message, for the subject message',
    },
    examples: ["calls reveal alice/desk/c1 --reason 'ticket 4711'"],
    load: async () => (await import('./run/calls.ts')).callsReveal,
  },
  {
    name: 'waits ls',
    brief: 'List callers that wait, oldest first',
    flags: { ...WAIT_FLAGS, ...PAGE_FLAGS },
    load: async () => (await import('./run/calls.ts')).waitsLs,
  },
  {
    name: 'waits count',
    brief: 'Count callers that wait',
    flags: WAIT_FLAGS,
    load: async () => (await import('./run/calls.ts')).waitsCount,
  },
  {
    name: 'waits watch',
    brief: 'Print a line when the oldest wait gets too old, and when none is any more',
    flags: { older: 'The age, 1s to 10m (default 10s)', ...USER_FLAG, ...COUNT_FLAG },
    load: async () => (await import('./run/calls.ts')).waitsWatch,
  },
  // Pauses.
  {
    name: 'pause',
    brief: 'Stop calls: none that is covered is admitted or written to a client from now on',
    flags: {
      reason: 'Why; required: callers that are refused, and the audit, show it',
      userId: 'Only calls of the clients of this user',
      clientId: 'Only calls of this client',
      callerKind: { help: 'Only calls of this kind of callers; mcp are agents', values: wordsOf('CommandCallerKind') },
      caller: 'Only calls of callers whose name matches this pattern',
      action: 'Only calls of actions that match this pattern, such as lamp.*',
      label: 'Only calls of programs whose name matches this pattern',
      everything: { help: 'All calls', on: true },
      for: 'For how long, such as 10m (default until somebody resumes)',
      until: 'Until when, such as 2026-01-31T12:00:00Z',
      cancelQueued: { help: 'Cancel what was not dispatched; otherwise it waits', on: true },
      cancelRunning: { help: 'Ask clients to cancel what runs', on: true },
    },
    examples: [
      "pause --user-id alice --caller-kind mcp --reason 'the agent runs wild' --cancel-running",
      "pause --everything --for 10m --reason 'incident 12'",
    ],
    load: async () => (await import('./run/pauses.ts')).pause,
  },
  {
    name: 'resume',
    brief: 'End a pause: calls are admitted again, and what waited is dispatched',
    args: ['pause'],
    load: async () => (await import('./run/pauses.ts')).resume,
  },
  {
    name: 'pauses ls',
    brief: 'List what is paused, newest first',
    flags: { ...USER_FLAG, ...PAGE_FLAGS },
    load: async () => (await import('./run/pauses.ts')).pausesLs,
  },
  // Streams, messages and the audit.
  {
    name: 'streams ls',
    brief: 'List the streams in which messages of a user are retained',
    args: ['user'],
    flags: { prefix: 'Only streams whose name after the user begins with this', ...PAGE_FLAGS },
    load: async () => (await import('./run/history.ts')).streamsLs,
  },
  {
    name: 'messages ls',
    brief: 'List retained messages of a stream, without payloads',
    args: ['stream'],
    flags: {
      kind: KIND,
      ...TIME_FLAGS,
      order: { help: 'Which come first (default oldest_first)', values: wordsOf('MessageOrder') },
      ...PAGE_FLAGS,
    },
    examples: ['messages ls alice/clients/desk --kind result,error --since 1h'],
    load: async () => (await import('./run/history.ts')).messagesLs,
  },
  {
    name: 'messages tail',
    brief: 'Print the newest messages of a stream, then those that come',
    args: ['stream'],
    flags: { kind: KIND, last: 'How many of the newest to begin with (default 10)', ...COUNT_FLAG },
    load: async () => (await import('./run/history.ts')).messagesTail,
  },
  {
    name: 'audit ls',
    brief: 'List what administrators did, newest first',
    flags: {
      ...USER_FLAG,
      who: 'Only this administrator, as admin:<name>',
      action: { help: 'Only this action', values: wordsOf('OperatorAction') },
      ...TIME_FLAGS,
      ...PAGE_FLAGS,
    },
    examples: ['audit ls --user-id alice --action reveal'],
    load: async () => (await import('./run/history.ts')).auditLs,
  },
  // Verbs that need no relay: contexts of the command line, conformance checks, and shell completion.
  {
    name: 'context add',
    brief: 'Add or replace a context: a relay, and where its token comes from',
    args: ['name', 'url'],
    flags: { storeToken: { help: 'Store the token of CALLBOARD_TOKEN in the file of contexts', on: true } },
    shared: TOKEN_FLAGS,
    output: false,
    examples: ["context add prod https://relay.example --token-command 'pass show relay'"],
    load: async () => (await import('./run/local.ts')).contextAdd,
  },
  {
    name: 'context use',
    brief: 'Make a context the current one',
    args: ['name'],
    shared: [],
    output: false,
    load: async () => (await import('./run/local.ts')).contextUse,
  },
  {
    name: 'context previous',
    brief: 'Make the context current that was before',
    shared: [],
    output: false,
    load: async () => (await import('./run/local.ts')).contextPrevious,
  },
  {
    name: 'context ls',
    brief: 'List contexts',
    shared: [],
    load: async () => (await import('./run/local.ts')).contextLs,
  },
  {
    name: 'context show',
    brief: 'Show a context, by default the current one; never a token',
    args: ['name?'],
    shared: [],
    load: async () => (await import('./run/local.ts')).contextShow,
  },
  {
    name: 'context rm',
    brief: 'Remove a context',
    args: ['name'],
    shared: [],
    output: false,
    load: async () => (await import('./run/local.ts')).contextRm,
  },
  {
    name: 'mcp',
    brief: 'Serve an agent on standard input and output, by the MCP endpoint of a relay',
    flags: {
      tools: { help: 'Which tools it is shown (default both)', values: ['builtin', 'actions'] },
      prefix: 'What the names of tools of actions begin with',
    },
    output: false,
    examples: ['mcp --context prod', 'mcp --tools actions --prefix kiosk_'],
    load: async () => (await import('./run/mcp.ts')).mcp,
  },
  {
    name: 'conformance',
    brief: 'Check an own client, in any language, against each demand of PROTOCOL.md',
    args: ['command...'],
    flags: {
      action: "Name of the client's echo action (default conformance.echo)",
      within: 'How long each answer of the client may take (default 5s)',
      port: 'Port of 127.0.0.1 that the client connects to (default a free one)',
      except: { help: 'Claims that do not count, as --list names them; may be repeated', many: true },
      list: { help: 'Print the claims and check nothing', on: true },
      json: { help: 'Print one JSON document', on: true },
    },
    shared: [],
    output: false,
    examples: ['conformance -- python3 client.py', 'conformance --port 4500', 'conformance --list'],
    load: async () => (await import('./run/conformance.ts')).conformance,
  },
  {
    name: 'completion',
    brief: 'Print a script that completes commands in bash, zsh or fish',
    args: ['shell'],
    shared: [],
    output: false,
    examples: ['completion bash > ~/.local/share/bash-completion/completions/callboard'],
    load: async () => (await import('./run/local.ts')).completion,
  },
];
