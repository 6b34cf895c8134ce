/**
 * Turns a verb into a command of Stricli, the library for command lines: its flags, its relay, its output and its
 * errors.
 */
import { buildCommand, type Command, type CommandContext } from '@stricli/core';
import { systemClock } from '../../clients/link/clock.ts';
import { visibleLine } from '../../protocol/visible-text.ts';
import type { Io } from '../io.ts';
import { readContexts } from './contexts-file.ts';
import { OPERATOR_EXIT, OperatorFailure, type OperatorExit } from './failure.ts';
import { OUTPUTS, type Output } from './output.ts';
import { openRelay, type OperatorRelay } from './relay.ts';
import { SHARED_FLAGS, type Flag, type OperatorRun, type SharedFlag, type Verb } from './verb.ts';

/** The context that Stricli passes to each command as `this`. */
export type OperatorContext = CommandContext & {
  readonly io: Io;
  /** Sets the exit code of the process. */
  readonly end: (exit: OperatorExit) => void;
};

type Given = Readonly<Record<string, string | boolean | string[] | undefined>>;

const SHARED: Readonly<Record<SharedFlag, string>> = {
  context: 'Name of the context to use (CALLBOARD_CONTEXT; default the current one)',
  url: 'Address of the relay (CALLBOARD_URL)',
  tokenFile: 'File with the token',
  tokenCommand: 'Shell command that prints the token',
};
/** The help text of each argument, by the argument's name. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  'user/client': 'Id of the user and of the client, such as alice/desk',
  'user/client/command': 'Ids of the user, the client and the command, such as alice/desk/c1',
  'owner/site': 'Id of the owner and of the site',
  user: 'Id of the user',
  stream: 'Full name of the stream, such as alice/clients/desk',
  node: 'Id of the node',
  action: 'Name of the action',
  name: 'Name of the context',
  url: 'Address of the relay',
  shell: 'bash, zsh or fish',
};
const OUTPUT = { kind: 'enum', values: OUTPUTS, brief: 'Form of the output', default: 'table' };

/** Builds the command of a verb. The verb's code is loaded when the command runs. */
export function commandOf(verb: Verb): Command<OperatorContext> {
  return buildCommand<Given, string[], OperatorContext>({
    docs: {
      brief: verb.brief,
      customUsage: [`[flags] ${usageOfArgs(verb)}`.trimEnd()],
      ...(verb.examples && { fullDescription: descriptionOf(verb.brief, verb.examples) }),
    },
    // Stricli infers the type of this member from literal flags, which a table of commands does not have.
    parameters: parametersOf(verb) as never,
    async func(given, ...args) {
      const output = OUTPUTS.find((form) => form === given['output']) ?? 'table';
      try {
        const run = await verb.load();
        this.end((await run(runOf({ io: this.io, given, args, output }))) ?? OPERATOR_EXIT.done);
      } catch (error) {
        this.end(complain(error, output, this.io));
      }
    },
  });
}

function descriptionOf(brief: string, examples: readonly string[]): string {
  return `${brief}\n\n${examples.map((line) => `  callboard ${line}`).join('\n')}`;
}

/** Returns the flags that a verb takes: its own and the shared ones, without `output`. */
export function flagsOf({ flags = {}, shared = SHARED_FLAGS }: Verb): Readonly<Record<string, Flag>> {
  return { ...flags, ...Object.fromEntries(shared.map((name) => [name, SHARED[name]])) };
}

/** Returns the arguments of a verb as people write them, such as `<user/client> <action> [params...]`. */
export function usageOfArgs({ args = [] }: Verb): string {
  return args.map((name) => (isOptional(name) ? `[${name.replace('?', '')}]` : `<${name}>`)).join(' ');
}

function isOptional(name: string): boolean {
  return /(\.\.\.|\?)$/.test(name);
}

function parametersOf(verb: Verb): object {
  const { args = [], output } = verb;
  const declared = Object.entries(flagsOf(verb)).map(([name, flag]) => [name, parameterOf(name, flag)]);
  return {
    ...(output !== false && { aliases: { o: 'output' } }),
    flags: { ...Object.fromEntries(declared), ...(output !== false && { output: OUTPUT }) },
    positional: positionalOf(args),
  };
}

function positionalOf(args: readonly string[]): object {
  if (args.at(-1)?.endsWith('...')) {
    const parameter = { brief: `In this order: ${args.join(' ')}`, parse: String, placeholder: 'words' };
    return { kind: 'array', parameter, minimum: args.length - 1 };
  }
  return { kind: 'tuple', parameters: args.map(argumentOf) };
}

function argumentOf(name: string): object {
  const placeholder = name.replace('?', '');
  const proposals = placeholder === 'name' ? { proposeCompletions: contextNames } : {};
  return { brief: ARGUMENTS[placeholder] ?? '', parse: String, placeholder, optional: isOptional(name), ...proposals };
}

function parameterOf(name: string, flag: Flag): object {
  if (typeof flag === 'string')
    return { ...textFlag(flag), ...(name === 'context' && { proposeCompletions: contextNames }) };
  if ('on' in flag) return { kind: 'boolean', brief: flag.help, optional: true, withNegated: false };
  if (flag.values === undefined) return { ...textFlag(flag.help), variadic: true };
  const choice = { kind: 'enum', values: flag.values, brief: flag.help, optional: true };
  return flag.many ? { ...choice, variadic: ',' } : choice;
}

function textFlag(brief: string): object {
  return { kind: 'parsed', parse: String, brief, optional: true };
}

async function contextNames(this: OperatorContext, partial: string): Promise<readonly string[]> {
  const { contexts } = await readContexts(this.io.env).catch(() => ({ contexts: {} }));
  return Object.keys(contexts).filter((name) => name.startsWith(partial));
}

type Invoked = {
  readonly io: Io;
  readonly given: Given;
  readonly args: readonly string[];
  readonly output: Output;
};

function runOf({ io, given, args, output }: Invoked): OperatorRun {
  const entries = Object.entries(given);
  const flags = Object.fromEntries(entries.map(([name, value]) => [name, textOfFlag(value)]));
  const lists = Object.fromEntries(entries.map(([name, value]) => [name, Array.isArray(value) ? value : undefined]));
  const stop = new AbortController();
  io.onStop(() => stop.abort(new OperatorFailure(OPERATOR_EXIT.interrupted, 'interrupted', 'Interrupted.')));
  const clock = io.clock ?? systemClock;
  let relay: OperatorRelay | undefined;
  return {
    ...{ io, clock, output, flags, lists, args, stopped: stop.signal },
    get relay() {
      return (relay ??= openRelay(flags, { env: io.env, clock }));
    },
  };
}

function textOfFlag(value: Given[string]): string | undefined {
  if (value === true) return 'true';
  return typeof value === 'string' ? value : undefined;
}

/** Writes one error to standard error: a JSON problem document with `-o json` and `jsonl`, otherwise one line. */
function complain(error: unknown, output: Output, io: Io): OperatorExit {
  const known = error instanceof OperatorFailure;
  const exit = known ? error.exit : OPERATOR_EXIT.unexpected;
  const code = known ? error.code : 'unexpected';
  const message = error instanceof Error ? error.message : String(error);
  const problem = (known && error.problem) || { code, detail: message };
  io.complain(
    output === 'table' || output === 'ids' ? `${visibleLine(`${code}: ${message}`)}\n` : `${JSON.stringify(problem)}\n`,
  );
  return exit;
}
