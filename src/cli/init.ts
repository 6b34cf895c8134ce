/** The command `callboard init`: writes a small project with a server, a client, a caller and a page. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { CommandError, UsageError } from './exit-codes.ts';
import { splitFlags } from './flags.ts';
import type { Io } from './io.ts';
import { IN_CHECKOUT, packageSource } from './installation.ts';

/**
 * The folder with the project's files, in TypeScript. They contain no type annotations, so their text is valid
 * JavaScript too.
 */
const TEMPLATES = join(import.meta.dirname, IN_CHECKOUT ? '../../starter' : '../starter');
const ONLY_TYPESCRIPT = ['tsconfig.json'];
const DEFAULT_FOLDER = 'callboard-project';

/** Writes the project and prints the next steps. Throws UsageError if the folder is not empty. */
export async function init(argv: readonly string[], io: Io): Promise<void> {
  const { own, rest: folders } = splitFlags(argv, { switches: ['--js', '--ts'] });
  const unknown = folders.filter((word) => word.startsWith('-'));
  if (unknown.length > 0) throw new UsageError(`${unknown.join(' ')}: init takes --ts (the default) or --js`);
  if (own.has('--js') && own.has('--ts')) throw new UsageError('--js: is not allowed together with --ts');
  if (folders.length > 1) throw new UsageError(`expected one folder, got ${folders.join(' ')}`);
  const [given = DEFAULT_FOLDER] = folders;
  const folder = resolve(given);
  requireEmpty(folder, given);
  mkdirSync(folder, { recursive: true });
  const language = own.has('--js') ? 'js' : 'ts';
  for (const name of readdirSync(TEMPLATES)) {
    if (language === 'js' && ONLY_TYPESCRIPT.includes(name)) continue;
    const text = readFileSync(join(TEMPLATES, name), 'utf8');
    writeFileSync(join(folder, translated(name, language)), translated(text, language), { flag: 'wx' });
  }
  writeFileSync(join(folder, 'package.json'), manifestOf(language, folder), { flag: 'wx' });
  writeFileSync(join(folder, '.gitignore'), 'node_modules/\n.env\n', { flag: 'wx' });
  writeFileSync(join(folder, '.env'), secrets(), { flag: 'wx', mode: 0o600 });
  io.print(nextSteps(given));
}

function requireEmpty(folder: string, given: string): void {
  let names: readonly string[];
  try {
    names = readdirSync(folder);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return;
    throw new CommandError(`${given} cannot be used: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (names.length > 0) throw new UsageError(`${given}: has files already; name a new folder`);
}

/** Adapts a text or a file name of the templates to the project's language: replaces the file names in it. */
function translated(text: string, language: 'js' | 'ts'): string {
  if (language === 'ts') return text;
  return text.replaceAll(/\b(server|client|call)\.ts\b/g, '$1.js');
}

function manifestOf(language: 'js' | 'ts', folder: string): string {
  const source = packageSource();
  const version =
    'path' in source ? `file:${relative(folder, source.path).replaceAll('\\', '/')}` : `^${source.version}`;
  const run = (name: string): string => `node --env-file=.env ${name}.${language}`;
  const manifest = {
    private: true,
    type: 'module',
    engines: { node: '>=24.9' },
    scripts: {
      start: run('server'),
      client: run('client'),
      call: run('call'),
      test: 'node --test',
      ...(language === 'ts' && { check: 'tsc' }),
    },
    dependencies: { callboard: version },
    ...(language === 'ts' && { devDependencies: { '@types/node': '^24', typescript: '>=5.9' } }),
  };
  return `${JSON.stringify(manifest, null, 2)}\n`;
}

function secrets(): string {
  const [secret, admin] = [32, 24].map((bytes) => randomBytes(bytes).toString('base64url'));
  return `SECRET=${secret}\nADMIN_TOKEN=${admin}\n`;
}

function nextSteps(folder: string): string {
  return `Wrote a project to ${folder}. Next:

  cd ${folder}
  npm install
  npm start            # the page, tokens and the relay: open the address that it prints

and in other terminals there:

  npm run client       # a client with the action notes.add
  npm run call         # calls the client and the page; the page asks you first

README.md says what each file is.
`;
}
