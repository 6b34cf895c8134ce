import { parseArgs } from 'node:util';
import type { InputError } from './core/errors.ts';
import { PREFIX, SETTING_NAMES, SWITCHES, isSettingName, type SettingName } from './settings.ts';

export type Environment = Readonly<Record<string, string | undefined>>;
/** The text of a setting, and the name of the variable or flag that gives it. */
export type Given = { readonly text: string; readonly shownAs: string };
type Read = { readonly given: ReadonlyMap<SettingName, Given>; readonly faults: InputError[] };

/** The texts of all settings in variables and flags (flags take precedence), and the faults in the flags. */
export function collectGiven(env: Environment, argv: readonly string[]): Read {
  const given = new Map<SettingName, Given>();
  for (const name of SETTING_NAMES) {
    const text = env[PREFIX + name];
    if (text !== undefined && text !== '') given.set(name, { text, shownAs: PREFIX + name });
  }
  return { given, faults: collectFlags(argv, given) };
}

function collectFlags(argv: readonly string[], given: Map<SettingName, Given>): InputError[] {
  const faults: InputError[] = [];
  const options = Object.fromEntries(
    SETTING_NAMES.map((name) => [flagOf(name), { type: SWITCHES.has(name) ? 'boolean' : 'string' } as const]),
  );
  const { tokens } = parseArgs({ args: [...argv], options, strict: false, tokens: true, allowPositionals: true });
  for (const token of tokens) {
    if (token.kind === 'positional') faults.push({ parameter: token.value, detail: 'is not expected here' });
    if (token.kind !== 'option') continue;
    const shownAs = `--${token.name}`;
    const flag = readFlag(token.name);
    if (flag === null) {
      faults.push({ parameter: token.rawName, detail: 'is not a known flag' });
      continue;
    }
    const text = token.value ?? flag.alone;
    if (text === undefined || text === '') faults.push({ parameter: shownAs, detail: 'needs a value' });
    else if (flag.off && token.value !== undefined) faults.push({ parameter: shownAs, detail: 'takes no value' });
    else given.set(flag.name, { text, shownAs });
  }
  return faults;
}

/**
 * The setting that a flag belongs to, and in `alone` its text without a value: `--fast-path` and `--no-fast-path` are
 * one setting. Null: not a known flag.
 */
function readFlag(flag: string): { readonly name: SettingName; readonly alone?: string; readonly off: boolean } | null {
  const off = flag.startsWith('no-');
  const written = off ? flag.slice('no-'.length) : flag;
  const name = written.replaceAll('-', '_').toUpperCase();
  if (!isSettingName(name) || flagOf(name) !== written) return null;
  if (SWITCHES.has(name)) return { name, alone: String(!off), off };
  return off ? null : { name, off };
}

function flagOf(name: SettingName): string {
  return name.toLowerCase().replaceAll('_', '-');
}
