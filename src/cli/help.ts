/** Writes the help of the command line: its commands, and the settings as flags. */
import { NOUNS } from './operator/nouns.ts';
import { FILE_SETTINGS } from '../settings-files.ts';
import { SETTING_NAMES, SWITCHES } from '../settings.ts';

/** Returns the text that `callboard help` prints. */
export function helpText(): string {
  const flags = SETTING_NAMES.map((name) => {
    const flag = `--${name.toLowerCase().replaceAll('_', '-')}`;
    return SWITCHES.has(name) ? flag : `${flag} <value>`;
  });
  return `callboard relays commands between callers and connected clients.

  callboard serve [--json] [flags]    start the relay (127.0.0.1:4400)
  callboard demo [--pace <calls per second>] [--browser <program>|none] [flags]
                                      start a relay with demo clients and traffic
  callboard console [--name <operator>] [--url <address>] [flags]
                                      print a link that signs in to the console, once
  callboard token --user <user> [--scope connect,invoke,host] [--ttl <seconds>] [flags]
                                      sign a user's token with the configured secret
  callboard spill-clean [flags]       remove expired payloads from the spill directory
  callboard healthcheck [--within <ms>] [flags]
                                      exit 0 if the relay of these settings is ready, otherwise 1
  callboard audit verify [--file <path>|--url <relay>] [flags]
                                      check the chain of the audit (token of an administrator: CALLBOARD_TOKEN)
  callboard schema                    print the GraphQL schema
  callboard help | --version

Commands for operators of a running relay; callboard <command> --help shows more:

${nouns()}
Each [flags] is also an environment variable: --max-body-bytes is CALLBOARD_MAX_BODY_BYTES. Flags take precedence.
A file can hold the text of ${FILE_SETTINGS.map((name) => `CALLBOARD_${name}`).join(', ')}: append _FILE to the variable, or -file to the flag.
${columns(flags)}
`;
}

function nouns(): string {
  const width = Math.max(...Object.keys(NOUNS).map(({ length }) => length)) + 2;
  return Object.entries(NOUNS)
    .map(([noun, brief]) => `  callboard ${noun.padEnd(width)}${brief}`)
    .join('\n');
}

function columns(flags: readonly string[]): string {
  const width = Math.max(...flags.map(({ length }) => length)) + 2;
  const rows: string[] = [];
  for (let i = 0; i < flags.length; i += 3) {
    const row = flags.slice(i, i + 3).map((flag) => flag.padEnd(width));
    rows.push(`  ${row.join('').trimEnd()}`);
  }
  return rows.join('\n');
}
