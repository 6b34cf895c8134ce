/** A call as a line for a shell. The token is a variable of the shell, so that it is never copied. */
import { relayUrl, segments } from '../base.ts';

export type LineOf = {
  readonly userId: string;
  readonly clientId: string;
  readonly action: string;
  /** JSON text; absent: the params are left for the user to write. */
  readonly params?: string | undefined;
  readonly commandId?: string | undefined;
  readonly respondWithinMs?: number | undefined;
  readonly connectWithinMs?: number | undefined;
};

export function curlLine(call: LineOf): string {
  const { userId, clientId, action } = call;
  const url = `${relayUrl()}/connections/${segments(userId, clientId)}/actions/${segments(action)}`;
  return [
    `curl -sS -H "authorization: Bearer $TOKEN" -H 'content-type: application/json' \\`,
    `  -d ${quote(bodyOf(call))} \\`,
    `  ${quote(url)}`,
  ].join('\n');
}

/** Members that the user did not choose are left to the relay's defaults. */
function bodyOf({ params = '{}', commandId, respondWithinMs, connectWithinMs }: LineOf): string {
  const members = [
    `"params":${params}`,
    commandId === undefined ? null : `"command_id":${JSON.stringify(commandId)}`,
    respondWithinMs === undefined ? null : `"respond_within_ms":${respondWithinMs}`,
    connectWithinMs === undefined ? null : `"connect_within_ms":${connectWithinMs}`,
  ];
  return `{${members.filter((member) => member !== null).join(',')}}`;
}

/** For a POSIX shell. */
function quote(text: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** As `curlLine`, for the command line of Callboard, which takes the token from the environment or a context. */
export function commandLine(call: LineOf): string {
  const { userId, clientId, action, params = '{}', commandId, respondWithinMs, connectWithinMs } = call;
  // Arguments can be read by other users of the machine, so the params come over standard input.
  const flags = [
    commandId === undefined ? [] : ['--id', commandId],
    connectWithinMs === undefined ? [] : ['--connect', `${connectWithinMs}ms`],
    respondWithinMs === undefined ? [] : ['--respond', `${respondWithinMs}ms`],
    ['--url', relayUrl()],
  ];
  const words = ['callboard', 'call', `${userId}/${clientId}`, action, ...flags.flat(), '--params', '-'];
  return `printf %s ${quote(params)} | ${words.map(quote).join(' ')}`;
}
