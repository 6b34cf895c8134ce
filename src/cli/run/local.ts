/**
 * Runs the verbs that need no relay: `context`, which manages an operator's relays, and `completion`, which prints a
 * completion script for a shell.
 */
import { readContexts, writeContexts, type ContextsFile, type RelayContext } from '../contexts-file.ts';
import { contextNamed } from '../relay-settings.ts';
import { usageFailure } from '../exit-codes.ts';
import { isHttpUrl } from '../io.ts';
import { wholePage } from '../listing.ts';
import type { OperatorRun, RunVerb } from '../verb.ts';
import { listText, objectText } from '../output.ts';

const COLUMNS = { shown: ['name', 'current', 'url', 'token_from'], id: ['name'] };
const NAME = /^[A-Za-z0-9][\w.-]{0,63}$/;

/** Adds or replaces a context. If there is no current context, it becomes the current one. */
export const contextAdd: RunVerb = async (run) => {
  const { args, io } = run;
  const [name = '', url = ''] = args;
  if (!NAME.test(name)) throw usageFailure('the name has 1 to 64 letters, digits, dots, dashes and underscores');
  const { username, password } = URL.parse(url) ?? {};
  if (!isHttpUrl(url)) throw usageFailure('expected the http or https address of a relay');
  if (username || password) throw usageFailure('an address holds no user and no password');
  const file = await readContexts(io.env);
  const contexts = { ...file.contexts, [name]: { url, ...tokenOf(run) } };
  await writeContexts(io.env, { ...file, contexts, current: file.current ?? name });
};

function tokenOf({ flags, io }: OperatorRun): Omit<RelayContext, 'url'> {
  const { tokenCommand: token_command, tokenFile: token_file, storeToken } = flags;
  if ([token_command, token_file, storeToken].filter((source) => source !== undefined).length > 1)
    throw usageFailure('--token-command, --token-file and --store-token: only one can be given');
  if (token_command !== undefined) return { token_command };
  if (token_file !== undefined) return { token_file };
  if (storeToken === undefined) return {};
  const token = io.env['CALLBOARD_TOKEN'] ?? '';
  if (token === '') throw usageFailure('--store-token: stores the token of CALLBOARD_TOKEN, which is not set');
  return { token };
}

export const contextUse: RunVerb = async ({ args, io }) => {
  const [name = ''] = args;
  const file = await readContexts(io.env);
  contextNamed(file, name);
  await makeCurrent(io.env, file, name);
};

export const contextPrevious: RunVerb = async ({ io }) => {
  const file = await readContexts(io.env);
  if (file.previous === null) throw usageFailure('there is no previous context');
  await makeCurrent(io.env, file, file.previous);
  io.complain(`The context is ${file.previous}.\n`);
};

async function makeCurrent(env: OperatorRun['io']['env'], file: ContextsFile, name: string): Promise<void> {
  if (file.current === name) return;
  await writeContexts(env, { ...file, current: name, previous: file.current });
}

export const contextLs: RunVerb = async ({ io, output }) => {
  const { contexts, current } = await readContexts(io.env);
  const items = Object.entries(contexts).map(([name, context]) => shown(name, context, current));
  io.print(listText(wholePage(items), output, COLUMNS));
};

export const contextShow: RunVerb = async ({ args, io, output }) => {
  const file = await readContexts(io.env);
  const name = args[0] ?? file.current;
  if (name === null) throw usageFailure('there is no current context');
  io.print(objectText(shown(name, contextNamed(file, name), file.current), output, COLUMNS));
};

export const contextRm: RunVerb = async ({ args, io }) => {
  const [name = ''] = args;
  const file = await readContexts(io.env);
  contextNamed(file, name);
  const { [name]: _, ...contexts } = file.contexts;
  const kept = (other: string | null): string | null => (other === name ? null : other);
  await writeContexts(io.env, { contexts, current: kept(file.current), previous: kept(file.previous) });
};

/** Returns a context for display, without its token and its token command, which may contain a secret. */
function shown(name: string, { url, token_command, token_file, token }: RelayContext, current: string | null) {
  const source = [
    ...(token_command === undefined ? [] : ['command']),
    ...(token_file === undefined ? [] : [`file ${token_file}`]),
    ...(token === undefined ? [] : ['stored']),
  ];
  return { name, current: name === current, url, token_from: source[0] ?? 'CALLBOARD_TOKEN' };
}

/**
 * The hidden command that the completion scripts run. Its arguments are the words of the line. It prints one proposal
 * per line.
 */
const COMPLETE = '__complete';

const BASH = `# bash completion of callboard. Install: callboard completion bash > ~/.local/share/bash-completion/completions/callboard
# Users may be e-mail addresses, so "@" must not end a word.
COMP_WORDBREAKS=\${COMP_WORDBREAKS//@/}
_callboard() {
  local line IFS=$'\\n'
  COMPREPLY=()
  while read -r line; do
    COMPREPLY+=("$(printf '%q' "$line")")
  done < <(callboard ${COMPLETE} "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  [[ \${#COMPREPLY[@]} -gt 0 ]] || compopt -o default
}
complete -F _callboard callboard
`;

const ZSH = `#compdef callboard
# zsh completion of callboard. Install: callboard completion zsh > a folder of $fpath, as _callboard
_callboard() {
  local -a proposals
  proposals=("\${(@f)$(callboard ${COMPLETE} "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  proposals=("\${(@)proposals:#}")
  if (( \${#proposals} )); then
    compadd -- "\${(@)proposals}"
  else
    _files
  fi
}
if [[ "$funcstack[1]" = _callboard ]]; then
  _callboard "$@"
else
  compdef _callboard callboard
fi
`;

const FISH = `# fish completion of callboard. Install: callboard completion fish > ~/.config/fish/completions/callboard.fish
function __callboard_complete
  set -l words (commandline -opc) (commandline -ct)
  callboard ${COMPLETE} $words[2..] 2>/dev/null
end
complete -c callboard -f -a '(__callboard_complete)'
`;

const SCRIPTS = new Map([
  ['bash', BASH],
  ['zsh', ZSH],
  ['fish', FISH],
]);

export const completion: RunVerb = async ({ args, io }) => {
  const script = SCRIPTS.get(args[0] ?? '');
  if (script === undefined) throw usageFailure(`expected ${[...SCRIPTS.keys()].join(', ')}`);
  io.print(script);
};
