/** Runs an operator's command with Stricli, the library for command lines. Only this folder imports Stricli. */
import { buildApplication, buildRouteMap, proposeCompletions, run, type Application } from '@stricli/core';
import { commandOf, type OperatorContext } from './command.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { NOUNS } from './flags.ts';
import type { Io } from './io.ts';
import { VERBS } from './verbs.ts';

function applicationOf(): Application<OperatorContext> {
  const routes = Object.fromEntries(Object.entries(NOUNS).map(([noun, brief]) => [noun, routeOf(noun, brief)]));
  return buildApplication(buildRouteMap({ docs: { brief: 'Commands for operators of a relay' }, routes }), {
    name: 'callboard',
    // The arguments after `--` are the words of another command, for example with `conformance`.
    scanner: { caseStyle: 'allow-kebab-for-camel', allowArgumentEscapeSequence: true },
    documentation: { disableAnsiColor: true },
  });
}

/** Returns the command with this name, or the group of commands that begin with this word. */
function routeOf(noun: string, brief: string) {
  const single = VERBS.find(({ name }) => name === noun);
  if (single) return commandOf(single);
  const below = VERBS.filter(({ name }) => name.startsWith(`${noun} `));
  const routes = Object.fromEntries(below.map((verb) => [verb.name.slice(noun.length + 1), commandOf(verb)]));
  return buildRouteMap({ docs: { brief }, routes });
}

/** Runs one operator's command and returns its exit code. Never throws. */
export async function runOperator(argv: readonly string[], io: Io): Promise<ExitCode> {
  let exit: ExitCode | null = null;
  const { process, context } = contextOf(io, (ended) => (exit = ended));
  await run(applicationOf(), argv, context);
  if (exit !== null) return exit;
  return process.exitCode === 0 || process.exitCode === null ? EXIT.done : EXIT.usage;
}

/** Returns proposals that complete the last of `words`, which is empty or incomplete. */
export async function completions(words: readonly string[], io: Io): Promise<readonly string[]> {
  const { context } = contextOf(io, () => {}, words);
  const found = await proposeCompletions(applicationOf(), words, context);
  const all = found.map(({ completion }) => completion);
  // Shells insert the common beginning of all proposals. Flags have no common beginning with values, so they are left
  // out unless the word begins with `-`.
  const values = all.filter((word) => !word.startsWith('-'));
  return values.length > 0 && !words.at(-1)?.startsWith('-') ? values : all;
}

function contextOf(io: Io, end: (exit: ExitCode) => void, words: readonly string[] = []) {
  const process = {
    stdout: { write: io.print },
    stderr: { write: io.complain },
    env: {},
    // Stricli sets the exit code only if it is null.
    exitCode: null as number | string | null,
  };
  return { process, context: { process, io, end, words } };
}
