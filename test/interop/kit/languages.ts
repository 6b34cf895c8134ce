/** Builds and starts the example programs of docs/examples in other languages, and says what is missing for them. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Program } from './program.ts';

const ROOT = join(import.meta.dirname, '../../..');
const EXAMPLES = join(ROOT, 'docs/examples');

export type Language = {
  readonly name: string;
  /** The reason why the language's programs cannot run on this machine; null if they can. */
  readonly missing: string | null;
  /** Builds the programs. It must be called once before the other methods. */
  build(): void;
  client(relay: string, token: string, clientId: string): Program;
  call(relay: string, token: string, args: readonly string[]): Program;
};

/**
 * The Python programs to try. Debian installs `websockets` for its own Python, which may not be the first one in PATH.
 */
const pythons = ['python3', '/usr/bin/python3'];
const python = pythons.find((path) => spawnSync(path, ['-c', 'import websockets']).status === 0);

const PYTHON: Language = {
  name: 'Python',
  missing: python === undefined ? 'needs python3 and the package python3-websockets' : null,
  build: () => undefined,
  client: (relay, token, clientId) => runPython(['lamp.py', clientId], relay, token),
  call: (relay, token, args) => runPython(['call.py', ...args], relay, token),
};

function runPython([file = '', ...args]: readonly string[], relay: string, token: string): Program {
  // `-B` keeps Python from writing a folder for bytecode beside the sources.
  return new Program([python ?? '', '-B', join(EXAMPLES, 'python', file), ...args], { RELAY: relay, TOKEN: token });
}

/** The folder in which Debian's packages install the sources of Go libraries. Go modules would need the network. */
const GO_PATH = '/usr/share/gocode';
const GO_PROGRAM = join(ROOT, '.cache/go/callboard-example');
const hasGo =
  spawnSync('go', ['version']).status === 0 && existsSync(join(GO_PATH, 'src/github.com/gorilla/websocket'));

const GO: Language = {
  name: 'Go',
  missing: hasGo ? null : 'needs go and the package golang-github-gorilla-websocket-dev',
  build() {
    const cache = join(ROOT, '.cache/go/build');
    mkdirSync(cache, { recursive: true });
    const env = { ...process.env, GO111MODULE: 'off', GOPATH: GO_PATH, GOCACHE: cache, GOFLAGS: '' };
    const options = { cwd: join(EXAMPLES, 'go'), env };
    execFileSync('go', ['vet', '.'], options);
    execFileSync('go', ['build', '-o', GO_PROGRAM, '.'], options);
  },
  client: (relay, token, clientId) => new Program([GO_PROGRAM, 'client', clientId], { RELAY: relay, TOKEN: token }),
  call: (relay, token, args) => new Program([GO_PROGRAM, 'call', ...args], { RELAY: relay, TOKEN: token }),
};

export const LANGUAGES: readonly Language[] = [PYTHON, GO];
