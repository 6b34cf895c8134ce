/**
 * Separates a command's own flags from flags that are settings of the relay, and has the flags and nouns that several
 * verbs share.
 */
import type { Flag } from './verb.ts';
import { UsageError } from './exit-codes.ts';

type Split = { readonly own: ReadonlyMap<string, string>; readonly rest: readonly string[] };

/**
 * Separates a command's own flags from its other arguments, which the caller then parses as settings. `values`: flags
 * with a value, written `--user alice` or `--user=alice`. `switches`: flags without a value. Throws UsageError if a
 * value is missing.
 */
export function splitFlags(
  argv: readonly string[],
  { values = [], switches = [] }: { readonly values?: readonly string[]; readonly switches?: readonly string[] },
): Split {
  const own = new Map<string, string>();
  const rest: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const [name = '', ...more] = (argv[i] ?? '').split('=');
    if (switches.includes(name) && more.length === 0) own.set(name, 'true');
    else if (!values.includes(name)) rest.push(argv[i] ?? '');
    else own.set(name, more.length > 0 ? more.join('=') : (argv[++i] ?? missing(name)));
  }
  return { own, rest };
}

function missing(name: string): never {
  throw new UsageError(`${name}: needs a value`);
}

/** The help texts of the operators' commands, by their first word. */
export const NOUNS: Readonly<Record<string, string>> = {
  status: 'State of the deployment',
  top: 'Rates and the busiest clients, again and again',
  clients: 'Connected clients',
  users: 'Users',
  actions: 'Actions that clients advertise',
  places: 'Execution contexts and browser windows',
  sites: 'Cooperative sites',
  call: 'Invoke an action',
  preflight: 'What would refuse a call',
  calls: 'Calls and their ends',
  waits: 'Callers that wait',
  pause: 'Stop calls',
  resume: 'End a pause',
  pauses: 'What is paused',
  streams: 'Streams of retained messages',
  messages: 'Retained messages',
  audit: 'What administrators did',
  revoke: 'Revoke tokens',
  revocations: 'Tokens that are revoked',
  devices: 'Devices that hold a key of their own',
  nodes: 'Nodes of the deployment',
  capacity: 'Admission scopes',
  policy: 'Checks of a policy file before it is used',
  context: 'Relays, and where their tokens come from',
  doctor: 'Checks of settings, token and relay',
  mcp: 'An MCP server for agents, on standard input and output',
  conformance: 'Checks of an own client against PROTOCOL.md',
  completion: 'Completion for shells',
};

export const CURSOR_FLAG = { cursor: 'Where the page begins: next_cursor of the page before' };

/** The flags of verbs that list rows in pages. */
export const PAGE_FLAGS: Readonly<Record<string, Flag>> = {
  limit: 'Most rows of a page, 1 to 1000 (default 100)',
  ...CURSOR_FLAG,
  all: { help: 'All pages, one after the other', on: true },
};

/** The flag of verbs that ask for confirmation before they act. */
export const YES_FLAG: Readonly<Record<string, Flag>> = {
  yes: { help: 'Do not ask; required if the input is not a terminal', on: true },
};
