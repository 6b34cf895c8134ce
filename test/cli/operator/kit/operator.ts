/** Runs operators' commands in this process, and collects what they print. */
import { main } from '../../../../src/cli/main.ts';
import type { Io } from '../../../../src/cli/io.ts';

export type Ended = { readonly code: number; readonly out: string; readonly err: string };

export type OperatorSettings = Pick<Io, 'clock' | 'ask' | 'screen'> & {
  readonly env?: Readonly<Record<string, string>>;
  readonly stop?: (stop: () => void) => void;
  /** Receives all standard output so far, whenever something is printed. */
  readonly onPrint?: (out: string) => void;
};

export type RunOperator = (argv: readonly string[], settings?: OperatorSettings) => Promise<Ended>;

/**
 * Returns a function that runs a command with this environment. Each run may replace variables. The contexts that are
 * saved on this machine are not read.
 */
export function operatorOf(base: Readonly<Record<string, string>>): RunOperator {
  return async (argv, { env, stop = () => {}, onPrint, ...io } = {}) => {
    let out = '';
    let err = '';
    const code = await main(argv, {
      ...io,
      env: { XDG_CONFIG_HOME: '/nonexistent', ...base, ...env },
      print(text) {
        out += text;
        onPrint?.(out);
      },
      complain: (text) => void (err += text),
      onStop: stop,
    });
    return { code, out, err };
  };
}

/** Returns a simulated interruption of a command. Pass `stop` to the run of the command, then call `interrupt`. */
export function interruption(): { readonly stop: (stop: () => void) => void; readonly interrupt: () => void } {
  const stops: (() => void)[] = [];
  return { stop: (stop) => void stops.push(stop), interrupt: () => stops.forEach((stop) => stop()) };
}
