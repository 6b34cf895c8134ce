/** Collects the texts of settings from environment variables, flags and files. Does not parse them. */
import { parseArgs } from 'node:util';
import type { InputError } from '../core/errors.ts';
import { PREFIX, SETTING_NAMES, SWITCHES, isSettingName, type SettingName } from '../settings.ts';
import { FILE_SETTINGS, FILE_SUFFIX, readSettingFile, settingOfFile } from '../settings/setting-files.ts';

export type Environment = Readonly<Record<string, string | undefined>>;
/** The text of a setting, and the name of the variable or flag from which it comes. */
export type SettingText = { readonly text: string; readonly shownAs: string };
type Collected = {
  readonly given: Map<SettingName, SettingText>;
  /** The files that were read. */
  readonly files: string[];
  readonly faults: InputError[];
};

/**
 * Collects the texts of all settings from variables, files and flags, with the faults in them. A flag overrides a
 * variable. It is a fault if variables give both a text and a file for one setting.
 */
export function collectTexts(env: Environment, argv: readonly string[]): Collected {
  const given = new Map<SettingName, SettingText>();
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
    else addFile(name, { text: path, shownAs }, { given, files, faults });
  }
  collectFlags(argv, { given, files, faults });
  return { given, files, faults };
}

function addFile(name: SettingName, at: SettingText, { given, files, faults }: Collected): void {
  files.push(at.text);
  const text = textOf(at, faults);
  if (text !== null) given.set(name, { text, shownAs: at.shownAs });
}

function collectFlags(argv: readonly string[], collected: Collected): void {
  const { given, faults } = collected;
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
    else if (flag.file) addFile(flag.name, { text, shownAs }, collected);
    else given.set(flag.name, { text, shownAs });
  }
}

/**
 * Returns the setting that a flag sets; null if the flag is unknown. `alone`: the value if no text follows the flag.
 * For example, `--fast-path` and `--no-fast-path` set the same setting to different values.
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
  /** Whether the flag's value is the path of a file that contains the setting's text. */
  readonly file?: boolean;
};

function flagOf(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}

/** Returns the text of the file that a setting names. If the file cannot be read, adds a fault and returns null. */
export function textOf({ text: path, shownAs }: SettingText, faults: InputError[]): string | null {
  const read = readSettingFile(path, shownAs);
  if ('text' in read) return read.text;
  faults.push(read);
  return null;
}
