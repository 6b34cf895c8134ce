/** Collects the texts of settings from variables, flags and files. Does not parse them. */
import { parseArgs } from 'node:util';
import type { InputError } from './core/errors.ts';
import { FILE_SETTINGS, FILE_SUFFIX, readSettingFile, settingOfFile } from './settings-files.ts';
import { PREFIX, SETTING_NAMES, SWITCHES, isSettingName, type SettingName } from './settings.ts';

export type Environment = Readonly<Record<string, string | undefined>>;
/** The text of a setting, and the name of the variable or flag that gives it. */
export type Given = { readonly text: string; readonly shownAs: string };
type Read = {
  readonly given: ReadonlyMap<SettingName, Given>;
  /** The files that were read. */
  readonly files: readonly string[];
  readonly faults: InputError[];
};

/**
 * Collects the texts of all settings in variables, files and flags, and the faults in them. Flags take precedence over
 * variables. A setting that is given both as a text and as a file is a fault, except where a flag overrides variables.
 */
export function collectGiven(env: Environment, argv: readonly string[]): Read {
  const given = new Map<SettingName, Given>();
  const files: string[] = [];
  const faults: InputError[] = [];
  for (const name of SETTING_NAMES) {
    const text = env[PREFIX + name];
    if (text !== undefined && text !== '') given.set(name, { text, shownAs: PREFIX + name });
  }
  for (const name of FILE_SETTINGS) {
    const path = env[PREFIX + name + FILE_SUFFIX];
    if (path === undefined || path === '') continue;
    const shownAs = PREFIX + name + FILE_SUFFIX;
    if (given.has(name)) faults.push({ parameter: shownAs, detail: `is not allowed together with ${PREFIX + name}` });
    else addFile(name, { path, shownAs }, { given, files, faults });
  }
  faults.push(...collectFlags(argv, given, files));
  return { given, files, faults };
}

type Collected = {
  readonly given: Map<SettingName, Given>;
  readonly files: string[];
  readonly faults: InputError[];
};

function addFile(
  name: SettingName,
  { path, shownAs }: { readonly path: string; readonly shownAs: string },
  { given, files, faults }: Collected,
): void {
  files.push(path);
  const read = readSettingFile(path, shownAs);
  if ('text' in read) given.set(name, { text: read.text, shownAs });
  else faults.push(read);
}

function collectFlags(argv: readonly string[], given: Map<SettingName, Given>, files: string[]): InputError[] {
  const faults: InputError[] = [];
  const options = Object.fromEntries([
    ...SETTING_NAMES.map((name) => [flagOf(name), { type: SWITCHES.has(name) ? 'boolean' : 'string' } as const]),
    ...FILE_SETTINGS.map((name) => [flagOf(name + FILE_SUFFIX), { type: 'string' } as const]),
  ]);
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
    else if (flag.file) addFile(flag.name, { path: text, shownAs }, { given, files, faults });
    else given.set(flag.name, { text, shownAs });
  }
  return faults;
}

/**
 * Returns the setting that a flag sets; null if the flag is unknown. `alone` is the value of a flag that is given
 * without a text. `--fast-path` and `--no-fast-path` set the same setting to different values.
 */
function readFlag(flag: string): ReadFlag | null {
  const off = flag.startsWith('no-');
  const written = off ? flag.slice('no-'.length) : flag;
  const name = written.replaceAll('-', '_').toUpperCase();
  const inFile = settingOfFile(name);
  if (inFile !== null) return off || flagOf(name) !== written ? null : { name: inFile, off, file: true };
  if (!isSettingName(name) || flagOf(name) !== written) return null;
  if (SWITCHES.has(name)) return { name, alone: String(!off), off };
  return off ? null : { name, off };
}

type ReadFlag = {
  readonly name: SettingName;
  readonly alone?: string;
  readonly off: boolean;
  /** Whether the value is the path of a file that has the setting's text. */
  readonly file?: boolean;
};

function flagOf(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}
