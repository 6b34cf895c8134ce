/**
 * Writes a call as a shell command. The command has a variable in place of the token, so that no token is ever copied.
 */
import { relayUrl, segments } from '../base.ts';

type LineOf = {
  readonly userId: string;
  readonly clientId: string;
  readonly action: string;
  /** The params as JSON text. Absent: the user must insert them into the command. */
  readonly params?: string | undefined;
  readonly commandId?: string | undefined;
  readonly contextId?: string | null | undefined;
  readonly respondWithinMs?: number | undefined;
  readonly connectWithinMs?: number | undefined;
};

/** The placeholder for params that are not known. It is not JSON, so the command fails until the user replaces it. */
const ARGUMENTS = 'ARGUMENTS';

export function curlLine(call: LineOf): string {
  const { userId, clientId, action } = call;
  const url = `${relayUrl()}/connections/${segments(userId, clientId)}/actions/${segments(action)}`;
  return [
    `curl -sS -H "authorization: Bearer $TOKEN" -H 'content-type: application/json' \\`,
    `  -d ${quote(bodyOf(call))} \\`,
    `  ${quote(url)}`,
  ].join('\n');
}

/**
 * Returns the body of the request. It omits members that the user did not choose, so that the relay uses its defaults.
 */
function bodyOf({ params = ARGUMENTS, commandId, contextId, respondWithinMs, connectWithinMs }: LineOf): string {
  const members = [
    `"params":${params}`,
    commandId === undefined ? null : `"command_id":${JSON.stringify(commandId)}`,
    contextId == null ? null : `"context_id":${JSON.stringify(contextId)}`,
    respondWithinMs === undefined ? null : `"respond_within_ms":${respondWithinMs}`,
    connectWithinMs === undefined ? null : `"connect_within_ms":${connectWithinMs}`,
  ];
  return `{${members.filter((member) => member !== null).join(',')}}`;
}

/** Quotes a text for a POSIX shell. */
const quote = (text: string): string =>
  /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/**
 * Writes the call as a command of Callboard's own command line, which takes the token from the environment or from a
 * stored context.
 */
export function commandLine(call: LineOf): string {
  const { userId, clientId, action, params = ARGUMENTS, commandId, contextId } = call;
  const { respondWithinMs, connectWithinMs } = call;
  // The params are passed through standard input, because other users of the machine can read arguments.
  const flags = [
    commandId === undefined ? [] : ['--id', commandId],
    contextId == null ? [] : ['--context-id', contextId],
    connectWithinMs === undefined ? [] : ['--connect', `${connectWithinMs}ms`],
    respondWithinMs === undefined ? [] : ['--respond', `${respondWithinMs}ms`],
    ['--url', relayUrl()],
  ];
  const words = ['callboard', 'call', `${userId}/${clientId}`, action, ...flags.flat(), '--params', '-'];
  return `printf %s ${quote(params)} | ${words.map(quote).join(' ')}`;
}
