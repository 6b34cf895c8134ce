/**
 * Runs the verb `completion`, which prints a script for a shell. The script asks this program which words may follow a
 * line.
 */
import { usageFailure } from '../failure.ts';
import type { RunVerb } from '../verb.ts';

/**
 * The name of the hidden command that the scripts run. Its arguments are the words of the line; it prints one proposal
 * a line.
 */
export const COMPLETE = '__complete';

const BASH = `# bash completion of callboard. Install: callboard completion bash > ~/.local/share/bash-completion/completions/callboard
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
