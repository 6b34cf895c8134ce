// Writes the package `callboard-client` to dist-client/: the client libraries from dist/, without any part of the relay
// and without dependencies. The packages that two of the libraries import are optional peer dependencies. `npm pack
// ./dist-client` creates the tarball. Runs as the last step of `npm run build` and needs that command's files.
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packedText } from './release/packed-links.ts';

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const FROM = at('dist');
const TO = at('dist-client');
/** The libraries: the purpose of each, and the packages that it may import. */
const LIBRARIES = {
  runtime: { what: 'a client: advertises actions and runs commands' },
  caller: { what: 'invokes, awaits and cancels commands' },
  host: { what: "publishes a site's events; a control server on loopback (Node only)" },
  site: { what: 'a viewer of a cooperative site: events and actions' },
  admin: { what: "reads a relay's state; cancels, disconnects, drains" },
  live: { what: 'follows a relay by subscriptions (needs graphql-sse)', peers: ['graphql-sse'] },
  enrol: { what: 'enrols a device: a key of its own, a code for a person, and a token that it renews', peers: [] },
  react: { what: 'hooks for React 19 (needs react)', peers: ['react'] },
};
const NAMES = Object.keys(LIBRARIES);

/** Matches the specifier of a static import, a re-export or an imported type. */
const IMPORT = /(?:\bfrom |\bimport |\bimport\()['"]([^'"]+)['"]/g;

/**
 * The only type that the declarations import from another package. The published package has its own copy of the type.
 */
const TYPED_DOCUMENT = "import type { DocumentTypeDecoration } from '@graphql-typed-document-node/core';";
const OWN_TYPED_DOCUMENT =
  'interface DocumentTypeDecoration<Data, Variables> {\n    __apiType?: (variables: Variables) => Data;\n}';

/** Copies a file and all files that it imports. Throws if a file imports a package that is not in `peers`. */
function copy(path, done, peers) {
  if (done.has(path)) return;
  done.add(path);
  const text = readFileSync(path, 'utf8').replace(TYPED_DOCUMENT, OWN_TYPED_DOCUMENT);
  const target = join(TO, relative(FROM, path));
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, text);
  for (const [, name] of text.matchAll(IMPORT)) {
    if (name.startsWith('node:') || peers.includes(name)) continue;
    if (!name.startsWith('.')) throw new Error(`${relative(FROM, path)} imports the package ${name}`);
    const file = resolve(dirname(path), name);
    copy(path.endsWith('.d.ts') ? file.replace(/\.js$/, '.d.ts') : file, done, peers);
  }
}

rmSync(TO, { recursive: true, force: true });
const copied = new Set();
for (const [library, { peers = [] }] of Object.entries(LIBRARIES)) {
  for (const end of ['js', 'd.ts']) copy(join(FROM, `clients/${library}/index.${end}`), copied, peers);
}

const relay = JSON.parse(readFileSync(at('package.json'), 'utf8'));
const { version, license, author, repository, homepage, bugs, exports } = relay;
const moved = ({ types, default: script }) => ({
  types: types.replace('./dist/', './'),
  default: script.replace('./dist/', './'),
});
const manifest = {
  name: 'callboard-client',
  version,
  description:
    'The clients of a callboard relay, for Node, browsers and React: runtime, caller, host, site, admin, live, enrol and react.',
  keywords: ['callboard', 'client', 'rpc', 'relay', 'websocket', 'sse', 'browser', 'react'],
  license,
  author,
  repository,
  homepage,
  bugs,
  type: 'module',
  sideEffects: false,
  // Node 22 is needed because the libraries use Promise.withResolvers, the global WebSocket and iterator helpers.
  engines: { node: '>=22' },
  exports: {
    '.': { types: './index.d.ts', default: './index.js' },
    ...Object.fromEntries(NAMES.map((library) => [`./${library}`, moved(exports[`./${library}`])])),
    './package.json': './package.json',
  },
  peerDependencies: { 'graphql-sse': '>=2.6 <3', react: relay.peerDependencies.react },
  peerDependenciesMeta: { 'graphql-sse': { optional: true }, react: { optional: true } },
};
// The package's root only documents the libraries. It exports none, because each page or program loads only the one
// that it uses.
const entryPoints = Object.fromEntries(NAMES.map((name) => [`callboard-client/${name}`, LIBRARIES[name].what]));
const about = `/**
 * The entry points of this package, and what each is for. Import from them, not from here, as in
 * \`import { createRuntime } from 'callboard-client/runtime'\`.
 */
`;
const types = Object.entries(entryPoints).map(
  ([name, what]) => `    /** ${what} */\n    readonly '${name}': string;\n`,
);
writeFileSync(join(TO, 'index.js'), `${about}export const entryPoints = ${JSON.stringify(entryPoints, null, 2)};\n`);
writeFileSync(join(TO, 'index.d.ts'), `${about}export declare const entryPoints: {\n${types.join('')}};\n`);
writeFileSync(join(TO, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
const { repository: source } = JSON.parse(readFileSync(at('project.json'), 'utf8'));
const places = new Map([
  ['docs/clients.md', 'README.md'],
  ...['calls', 'options', 'troubleshooting'].map((page) => [`docs/${page}.md`, `docs/${page}.md`]),
]);
mkdirSync(join(TO, 'docs'));
for (const [page, place] of places) {
  const packed = { page, places, repository: source, tag: `v${version}` };
  writeFileSync(join(TO, place), packedText(readFileSync(at(page), 'utf8'), packed));
}
copyFileSync(at('LICENSE'), join(TO, 'LICENSE'));
process.stdout.write(`dist-client: callboard-client ${version}, ${copied.size} files\n`);
