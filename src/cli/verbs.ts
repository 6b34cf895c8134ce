/**
 * Joins the operators' commands in one application of Stricli, the library for command lines. Only this folder imports
 * Stricli.
 */
import { buildApplication, buildRouteMap, proposeCompletions, run, type Application } from '@stricli/core';
import type { Io } from '../io.ts';
import { commandOf, type OperatorContext } from './command.ts';
import { OPERATOR_EXIT, type OperatorExit } from './failure.ts';
import { NOUNS } from './nouns.ts';
import { VERBS } from './verbs/table.ts';

function applicationOf(): Application<OperatorContext> {
  const routes = Object.fromEntries(Object.entries(NOUNS).map(([noun, brief]) => [noun, routeOf(noun, brief)]));
  return buildApplication(buildRouteMap({ docs: { brief: 'Commands for operators of a relay' }, routes }), {
    name: 'callboard',
    scanner: { caseStyle: 'allow-kebab-for-camel' },
    documentation: { caseStyle: 'convert-camel-to-kebab', disableAnsiColor: true },
  });
}

/** Returns the command of this name, or else the group of commands below it. */
function routeOf(noun: string, brief: string) {
  const single = VERBS.find(({ name }) => name === noun);
  if (single) return commandOf(single);
  const below = VERBS.filter(({ name }) => name.startsWith(`${noun} `));
  const routes = Object.fromEntries(below.map((verb) => [verb.name.slice(noun.length + 1), commandOf(verb)]));
  return buildRouteMap({ docs: { brief }, routes });
}

/** Runs one operator's command and returns its exit code. Never throws. */
export async function runOperator(argv: readonly string[], io: Io): Promise<OperatorExit> {
  let exit: OperatorExit | null = null;
  const { process, context } = contextOf(io, (ended) => (exit = ended));
  await run(applicationOf(), argv, context);
  if (exit !== null) return exit;
  return process.exitCode === 0 || process.exitCode === null ? OPERATOR_EXIT.done : OPERATOR_EXIT.usage;
}

/** Returns proposals that complete the last of `words`. That word is empty or typed only in part. */
export async function completions(words: readonly string[], io: Io): Promise<readonly string[]> {
  const { context } = contextOf(io, () => {});
  const found = await proposeCompletions(applicationOf(), words, context);
  return found.map(({ completion }) => completion);
}

function contextOf(io: Io, end: (exit: OperatorExit) => void) {
  const process = {
    stdout: { write: io.print },
    stderr: { write: io.complain },
    env: {},
    // Stricli sets the code only while it is null.
    exitCode: null as number | string | null,
  };
  return { process, context: { process, io, end } };
}
