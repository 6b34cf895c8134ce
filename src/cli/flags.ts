/** Separates the flags of a command from the flags that are settings of the relay. */
import { UsageError } from './io.ts';

export type Split = { readonly own: ReadonlyMap<string, string>; readonly rest: readonly string[] };

/**
 * Separates a command's own flags from its other arguments, which the caller then reads as settings. Flags named in
 * `values` are written `--user alice` or `--user=alice`. Flags named in `switches` have no value. Throws UsageError
 * when a value is missing.
 */
export function splitFlags(
  argv: readonly string[],
  { values = [], switches = [] }: { readonly values?: readonly string[]; readonly switches?: readonly string[] },
): Split {
  const own = new Map<string, string>();
  const rest: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const [name = '', ...more] = (argv[i] ?? '').split('=');
    if (switches.includes(name) && more.length === 0) own.set(name, 'true');
    else if (!values.includes(name)) rest.push(argv[i] ?? '');
    else own.set(name, more.length > 0 ? more.join('=') : (argv[++i] ?? missing(name)));
  }
  return { own, rest };
}

function missing(name: string): never {
  throw new UsageError(`${name}: needs a value`);
}
