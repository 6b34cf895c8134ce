/** Converts a verb to a command of Stricli, the library for command lines: arguments, flags, completion and errors. */
import { buildCommand, type Command, type CommandContext } from '@stricli/core';
import { systemClock } from '../clients/link/platform.ts';
import { visibleLine } from '../protocol/visible-text.ts';
import { EXIT, OperatorFailure, type ExitCode } from './exit-codes.ts';
import { messageOf, type Io } from './io.ts';
import { OUTPUTS, type Output } from './output.ts';
import { openRelay, type OperatorRelay } from './relay.ts';
import { SHARED_FLAGS, type Flag, type OperatorRun, type Verb } from './verb.ts';

/** The context that Stricli passes to each command as `this`. */
export type OperatorContext = CommandContext & {
  readonly io: Io;
  /** The words of the line that a shell is completing. The last word may be incomplete. Empty when a command runs. */
  readonly words: readonly string[];
  /** Sets the exit code of the process. */
  readonly end: (exit: ExitCode) => void;
};

type FlagValues = Readonly<Record<string, string | boolean | string[] | undefined>>;

/** The help text of each argument, by the argument's name. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  'user/client': 'Id of the user and of the client, such as alice/desk',
  'user/client/command': 'Ids of the user, the client and the command, such as alice/desk/c1',
  'owner/site': 'Id of the owner and of the site',
  user: 'Id of the user',
  stream: 'Full name of the stream, such as alice/clients/desk',
  node: 'Id of the node',
  pause: 'Id of the pause',
  action: 'Name of the action',
  name: 'Name of the context',
  url: 'Address of the relay',
  shell: 'bash, zsh or fish',
  file: 'Path of the policy file',
};
const OUTPUT = { kind: 'enum', values: OUTPUTS, brief: 'Form of the output', default: 'table' };

/** Builds the command of a verb. The verb's code is loaded only when the command runs. */
export function commandOf(verb: Verb): Command<OperatorContext> {
  return buildCommand<FlagValues, string[], OperatorContext>({
    docs: {
      brief: verb.brief,
      customUsage: [`[flags] ${usageOfArgs(verb)}`.trimEnd()],
      ...(verb.examples && { fullDescription: descriptionOf(verb.brief, verb.examples) }),
    },
    // Stricli infers the type of this member from flags that are literals. These flags come from a table.
    parameters: parametersOf(verb) as never,
    async func(given, ...args) {
      const output = OUTPUTS.find((form) => form === given['output']) ?? 'table';
      try {
        const run = await verb.load();
        this.end((await run(runOf({ io: this.io, given, args, output }))) ?? EXIT.done);
      } catch (error) {
        this.end(complain(error, output, this.io));
      }
    },
  });
}

function descriptionOf(brief: string, examples: readonly string[]): string {
  return `${brief}\n\n${examples.map((line) => `  callboard ${line}`).join('\n')}`;
}

/** Returns the flags of a verb without `output`: its own flags and the shared ones. */
function flagsOf({ flags = {}, shared }: Verb): Readonly<Record<string, Flag>> {
  const common = shared ? Object.fromEntries(shared.map((name) => [name, SHARED_FLAGS[name]])) : SHARED_FLAGS;
  return { ...flags, ...common };
}

/** Returns the arguments of a verb as its help shows them, such as `<user/client> <action> [params...]`. */
export function usageOfArgs({ args = [] }: Verb): string {
  return args.map((name) => (isOptional(name) ? `[${name.replace('?', '')}]` : `<${name}>`)).join(' ');
}

function isOptional(name: string): boolean {
  return /(\.\.\.|\?)$/.test(name);
}

function parametersOf(verb: Verb): object {
  const { output } = verb;
  const declared = Object.entries(flagsOf(verb)).map(([name, flag]) => [name, parameterOf(name, flag)]);
  return {
    ...(output !== false && { aliases: { o: 'output' } }),
    flags: { ...Object.fromEntries(declared), ...(output !== false && { output: OUTPUT }) },
    positional: positionalOf(verb),
  };
}

function positionalOf({ name: verb, args = [] }: Verb): object {
  if (args.at(-1)?.endsWith('...')) {
    const parameter = { brief: `In this order: ${args.join(' ')}`, parse: String, placeholder: 'words' };
    return { kind: 'array', parameter: { ...parameter, ...proposing(atPlace(verb, args)) }, minimum: args.length - 1 };
  }
  return { kind: 'tuple', parameters: args.map(argumentOf) };
}

function argumentOf(name: string): object {
  const placeholder = name.replace('?', '');
  const parameter = { brief: ARGUMENTS[placeholder] ?? '', parse: String, placeholder, optional: isOptional(name) };
  return { ...parameter, ...proposing(() => placeholder) };
}

function parameterOf(name: string, flag: Flag): object {
  if (typeof flag === 'string') return { ...textFlag(flag), ...proposing(() => FLAG_PLACEHOLDERS[name] ?? '') };
  if ('on' in flag) return { kind: 'boolean', brief: flag.help, optional: true, withNegated: false };
  if (flag.values === undefined) return { ...textFlag(flag.help), variadic: true };
  const choice = { kind: 'enum', values: flag.values, brief: flag.help, optional: true };
  return flag.many ? { ...choice, variadic: ',' } : choice;
}

function textFlag(brief: string): object {
  return { kind: 'parsed', parse: String, brief, optional: true };
}

// Proposes values of arguments and flags for shell completion.

/** For each of these flags, the argument whose proposed values the flag uses. */
const FLAG_PLACEHOLDERS: Readonly<Record<string, string>> = {
  context: 'name',
  userId: 'user',
  owner: 'user',
  clientId: 'client',
};

type Proposing = (this: OperatorContext, partial: string) => Promise<readonly string[]>;

/**
 * Returns the method that Stricli calls for proposals. `of`: returns the name of the argument to which the last word
 * belongs.
 */
function proposing(of: (words: readonly string[]) => string): { readonly proposeCompletions: Proposing } {
  return {
    async proposeCompletions(partial) {
      const { io, words } = this;
      const { proposals } = await import('./proposals.ts');
      const found = await proposals(of(words), { words, io });
      return found.filter((value) => value.startsWith(partial));
    },
  };
}

/**
 * Returns a function that tells to which argument the last word belongs. It returns the empty text after a flag,
 * because the word may be the flag's value.
 */
function atPlace(verb: string, args: readonly string[]): (words: readonly string[]) => string {
  return (words) => {
    const given = words.slice(verb.split(' ').length);
    return given.some((word) => word.startsWith('-')) ? '' : (args[given.length - 1] ?? '');
  };
}

type Invoked = Pick<OperatorRun, 'io' | 'args' | 'output'> & { readonly given: FlagValues };

function runOf({ io, given, args, output }: Invoked): OperatorRun {
  const entries = Object.entries(given);
  const flags = Object.fromEntries(entries.map(([name, value]) => [name, textOfFlag(value)]));
  const lists = Object.fromEntries(entries.map(([name, value]) => [name, Array.isArray(value) ? value : undefined]));
  const stop = new AbortController();
  io.onStop(() => stop.abort(new OperatorFailure(EXIT.interrupted, 'interrupted', 'Interrupted.')));
  const clock = io.clock ?? systemClock;
  let relay: OperatorRelay | undefined;
  return {
    io,
    clock,
    output,
    flags,
    lists,
    args,
    stopped: stop.signal,
    get relay() {
      return (relay ??= openRelay(flags, { env: io.env, clock }));
    },
  };
}

function textOfFlag(value: FlagValues[string]): string | undefined {
  if (value === true) return 'true';
  return typeof value === 'string' ? value : undefined;
}

/**
 * Writes an error to standard error and returns its exit code. With `-o json` and `-o jsonl` the error is a JSON
 * problem document; otherwise it is one line.
 */
function complain(error: unknown, output: Output, io: Io): ExitCode {
  const known = error instanceof OperatorFailure;
  const exit = known ? error.exit : EXIT.failed;
  const code = known ? error.code : 'unexpected';
  const message = messageOf(error);
  const problem = (known && error.problem) || { code, detail: message };
  io.complain(
    output === 'table' || output === 'ids' ? `${visibleLine(`${code}: ${message}`)}\n` : `${JSON.stringify(problem)}\n`,
  );
  return exit;
}
