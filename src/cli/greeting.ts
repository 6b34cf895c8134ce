/** Writes the text that `callboard serve` prints when it begins to listen. */
import { createRequire } from 'node:module';
import { join, sep } from 'node:path';
import { TRIAL_USER, type Credentials } from './trial.ts';

export type Started = {
  readonly url: string;
  readonly mode: string;
  readonly nodeId: string;
  readonly credentials: Credentials | null;
  /** The one-time code that signs the user in to the GraphQL editor. Null: the editor asks for a token. */
  readonly code: string | null;
  /** The one-time code that signs the operator in to the console. Null: the console asks for a token. */
  readonly consoleCode: string | null;
};

/** Returns one line of JSON for programs that start a relay. */
export function jsonLine({ url, credentials }: Started): string {
  const generated = credentials && {
    admin_token: credentials.adminToken,
    secret: credentials.secret,
    user_token: credentials.userToken,
  };
  return `${JSON.stringify({ event: 'listening', url, ...generated })}\n`;
}

/** Returns the text for a person: the addresses to open, and commands to paste. */
export function greeting(started: Started): string {
  const { url, mode, nodeId, credentials, code, consoleCode } = started;
  const editor = code === null ? `${url}/graphql` : `${url}/graphql#code=${code}`;
  const page = consoleCode === null ? `${url}/console/` : `${url}/console/#code=${consoleCode}`;
  const once = code === null ? '' : ' (signed in, once, within 10 minutes)';
  return `callboard is listening at ${url} (${mode} mode, node ${nodeId})
  console         ${page}${once}
  overview        ${url}/
  GraphQL editor  ${editor}${once}
  REST reference  ${url}/reference
${credentials ? trial(url, credentials) : configured(url)}`;
}

function configured(url: string): string {
  return `
Try, with an administrator's token:
  curl -H "authorization: Bearer $ADMIN" ${url}/users
`;
}

function trial(url: string, { adminToken, secret, userToken }: Credentials): string {
  return `
No credentials are configured. These were generated for this run; the secret is ${secret}
TOKEN is for the user "${TRIAL_USER}" (scopes connect invoke host, one day), ADMIN for an administrator. Paste into another terminal:

export TOKEN=${userToken} ADMIN=${adminToken}

Then a client, which runs in the background, and a call of it:

${client(url)} &
curl -H "authorization: Bearer $TOKEN" -H 'content-type: application/json' \\
  -d '{"params":{"text":"milk"},"connect_within_ms":10000}' ${url}/connections/${TRIAL_USER}/kiosk-1/actions/notes.add

And who is connected, as the administrator sees it:

curl -H "authorization: Bearer $ADMIN" ${url}/connections
`;
}

/** Returns a shell command that runs a client. Its lines contain no single quotes. */
function client(url: string): string {
  return `${nodeCommand()} --input-type=module -e '
import { env } from "node:process";
import { createRuntime } from "${runtimeSpecifier()}";
const runtime = createRuntime({
  url: "${url.replace(/^http/, 'ws')}/connect", token: env.TOKEN, clientId: "kiosk-1", clientType: "console",
});
runtime.handle("notes.add", { summary: "Adds a note" }, ({ text }) => ({ added: text }));
runtime.connect();'`;
}

/** Returns the shell command that starts the Node that runs this process. */
function nodeCommand(): string {
  return process.execPath.includes(`${sep}node_modules${sep}`) ? 'npx node' : 'node';
}

/**
 * Returns the name by which a program in this folder imports the client runtime: the package's name, or the address of
 * its file if the package is not installed.
 */
function runtimeSpecifier(): string {
  const name = 'callboard/runtime';
  try {
    createRequire(join(process.cwd(), 'client.mjs')).resolve(name);
    return name;
  } catch {
    return import.meta.resolve(
      import.meta.filename.endsWith('.ts') ? '../clients/runtime/index.ts' : '../clients/runtime/index.js',
    );
  }
}
