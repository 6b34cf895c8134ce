/** Tests both packages, built, packed and installed as a user installs them. */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, cp, mkdir, readFile, readdir, symlink, writeFile } from 'node:fs/promises';
import { get } from 'node:http';
import { dirname, join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Browser } from 'playwright-core';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { launchChromium } from '../browser/kit/chromium.ts';
import { startRealRelay } from '../clients/kit/real-relay.ts';
import {
  bundle,
  emptyFolder,
  type Package,
  PACKAGES,
  packAndInstall,
  type Packed,
  program,
  run,
  startExample,
  startProgram,
  titleOf,
  writeExamples,
} from './kit/packed.ts';
import { TEST_MS } from '../kit/patience.ts';

// Building, packing and installing take minutes on a busy machine.
vi.setConfig({ hookTimeout: 2 * TEST_MS });

const ROOT = join(import.meta.dirname, '../..');
const LIBRARIES = ['runtime', 'caller', 'host', 'site', 'admin', 'live', 'enrol', 'react'] as const;
const IN_PAGES = ['runtime', 'caller', 'site', 'admin', 'live', 'enrol', 'react'] as const;
/** What a program installs beside `callboard-client` for two of its libraries. */
const PEERS = ['graphql-sse', 'react', '@types/react'] as const;

let packed: Packed;
let browser: Browser;
beforeAll(async () => {
  packed = await packAndInstall();
  await withoutPeers();
  for (const name of PACKAGES) await addPeers(packed.installed(name));
  browser = await launchChromium();
});
afterAll(async () => {
  await browser?.close();
  await packed?.[Symbol.asyncDispose]();
});

let bare: readonly string[] = [];
let unpeered = '';

/** Looks at `callboard-client` before anything is installed beside it. */
async function withoutPeers(): Promise<void> {
  const folder = packed.installed('callboard-client');
  bare = await readdir(join(folder, 'node_modules'));
  unpeered = await inNode(
    'callboard-client',
    `for (const library of ['caller', 'live', 'react']) {
      await import('callboard-client/' + library).then(() => console.log('found'), ({ message }) => console.log(message));
    }`,
  );
}

/** Puts the peers beside the package, unless it has brought them. */
async function addPeers(folder: string): Promise<void> {
  for (const peer of PEERS) {
    const place = join(folder, 'node_modules', peer);
    await mkdir(dirname(place), { recursive: true });
    if (!existsSync(place)) await symlink(join(ROOT, 'node_modules', peer), place);
  }
}

async function manifestOf(name: Package): Promise<Readonly<Record<string, unknown>>> {
  return JSON.parse(await readFile(join(packed.installed(name), 'node_modules', name, 'package.json'), 'utf8'));
}

/** Runs a module in the folder where the package is installed. */
async function inNode(name: Package, code: string): Promise<string> {
  await writeFile(join(packed.installed(name), 'program.js'), code);
  return run(packed.installed(name), process.execPath, 'program.js');
}

describe.each(PACKAGES)('%s as it is published', (name) => {
  test('has whole metadata and nothing that only a checkout needs', async () => {
    const manifest = await manifestOf(name);
    for (const member of [
      'description',
      'keywords',
      'license',
      'repository',
      'homepage',
      'bugs',
      'engines',
      'exports',
    ]) {
      expect(manifest[member], member).toBeTruthy();
    }
    for (const member of ['scripts', 'devDependencies', 'overrides', 'allowScripts']) {
      expect(manifest[member], member).toBeUndefined();
    }
    const files = await readdir(join(packed.installed(name), 'node_modules', name));
    expect(files).toEqual(expect.arrayContaining(['LICENSE', 'README.md']));
  });

  test('has pages whose links lead to files of the package or to absolute addresses, README.md only to the latter', async () => {
    const folder = join(packed.installed(name), 'node_modules', name);
    const pages = (await readdir(folder, { recursive: true })).filter(
      (path) => /\.md$/.test(path) && !/(^|\/)(dist|node_modules)\//.test(path),
    );
    expect(pages.toSorted()).toEqual(expect.arrayContaining(['README.md', 'docs/troubleshooting.md']));
    const broken: string[] = [];
    for (const page of pages) {
      const text = (await readFile(join(folder, page), 'utf8')).replaceAll(/^(`{3,})[^]*?^\1`*$/gm, '');
      const links = [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g), ...text.matchAll(/\b(?:src|srcset)="([^"]+)"/g)];
      for (const [, target = ''] of links) {
        // Registries show README.md without the package.
        const leads = page !== 'README.md' && existsSync(join(folder, dirname(page), target));
        if (!/^[a-z]+:/.test(target) && !leads) broken.push(`${page}: ${target}`);
      }
    }
    expect(broken).toEqual([]);
    const shown = await readFile(join(folder, 'README.md'), 'utf8');
    expect(shown.includes('/blob/v')).toBe(name === 'callboard');
    expect(shown).not.toContain('<picture>');
  });

  test('satisfies publint and are-the-types-wrong', async () => {
    const { messages, pkg } = await publint({
      pkgDir: join(packed.installed(name), 'node_modules', name),
      pack: false,
      strict: true,
    });
    expect(messages.map((message) => formatMessage(message, pkg))).toEqual([]);
    await run(packed.folder(name), program('attw'), packed.tarball(name), '--profile', 'esm-only', '--no-emoji');
  });

  test('has the same names in each library, in Node', async () => {
    const names = await inNode(
      name,
      `for (const library of ${JSON.stringify(LIBRARIES)}) {
        const { default: none, ...names } = await import('${name}/' + library);
        console.log(library + ': ' + Object.keys(names).join(' '));
      }`,
    );
    const own = LIBRARIES.map(async (library) => {
      const names: object = await import(`../../src/clients/${library}/index.ts`);
      return `${library}: ${Object.keys(names).toSorted().join(' ')}\n`;
    });
    expect(names).toBe((await Promise.all(own)).join(''));
  });

  test('checks params in a page that allows only its own origin', async () => {
    const page = await bundle(
      packed.installed(name),
      'page',
      `${IN_PAGES.map((library) => `import * as ${library} from '${name}/${library}';`).join('\n')}
      const { createRuntime } = runtime;
      const client = createRuntime({ url: 'ws://relay.test/connect', token: 't', clientId: 'c', clientType: 'browser' });
      client.handle('a', { schema: { type: 'object', properties: { to: { format: 'email' } } } }, () => 1);
      let fault = 'none';
      try { client.handle('b', { schema: { type: 'nonsense' } }, () => 1); } catch (error) { fault = error.name; }
      document.title = [fault, ...[runtime, caller, site, admin, live, react].map((names) => Object.keys(names).length)].join(' ');`,
    );
    expect(await titleOf(browser, page)).toMatch(/^TypeError( [1-9]\d*){6}$/);
  });

  test('leaves out of a page what the page does not use', async () => {
    const sizes: Record<string, number> = {};
    for (const library of IN_PAGES) {
      const code = `import * as all from '${name}/${library}'; globalThis.all = { ...all };`;
      sizes[library] = gzipSync(await bundle(packed.installed(name), library, code)).length;
    }
    expect(sizes['runtime']).toBeLessThanOrEqual(20_950);
    expect(sizes['caller']).toBeLessThanOrEqual(12_300);
    expect(sizes['site']).toBeLessThanOrEqual(7_300);
    expect(sizes['live']).toBeLessThanOrEqual(9_600);
    expect(sizes['enrol']).toBeLessThanOrEqual(3_000);
    // A program calls over a link or over HTTP, and is built with one of the two.
    const callers = { createLinkCaller: 10_150, createHttpCaller: 6_350 };
    for (const [make, bound] of Object.entries(callers)) {
      const code = `import { ${make} } from '${name}/caller'; globalThis.all = ${make};`;
      expect(gzipSync(await bundle(packed.installed(name), make, code)).length).toBeLessThanOrEqual(bound);
    }
    // React itself is the program's, and is not counted.
    const hooks = `import * as all from '${name}/react'; globalThis.all = { ...all };`;
    const code = await bundle(packed.installed(name), 'hooks', hooks, ['react']);
    expect(gzipSync(code).length).toBeLessThan(4_500);
    const one = `import { rawJson } from '${name}/runtime'; globalThis.all = rawJson;`;
    expect((await bundle(packed.installed(name), 'one', one)).length).toBeLessThan(2_000);
  });

  test('has types that a strict program compiles against', async () => {
    const folder = packed.installed(name);
    const imports = LIBRARIES.map((library) => `import * as ${library} from '${name}/${library}';`);
    const use = `
      const handle: runtime.Handler = ({ text }) => text;
      const done: Promise<{ readonly state: 'CANCELLED' | 'REQUESTED' | 'TOO_LATE' }> = admin
        .createAdmin({ url: '', token: '' })
        .cancel({ userId: '', clientId: '', commandId: '' });
      // @ts-expect-error: the state is none of these
      const wrong: Promise<{ readonly state: 'NEVER' }> = done;
      export { handle, wrong, caller, host, site, live, react };`;
    await writeFile(join(folder, 'program.ts'), `${imports.join('\n')}${use}`);
    for (const module of ['nodenext', 'esnext']) {
      const options = ['--strict', '--noEmit', '--target', 'es2024', '--lib', 'es2024,esnext.disposable,dom'];
      const resolution = module === 'esnext' ? 'bundler' : module;
      const types = ['--typeRoots', join(import.meta.dirname, '../../node_modules/@types'), '--types', 'node'];
      const modules = ['--module', module, '--moduleResolution', resolution];
      await run(folder, program('tsc'), ...options, ...modules, ...types, 'program.ts');
    }
  });
});

test('callboard-client brings nothing with it, and says what two of its libraries need', () => {
  expect(bare.filter((entry) => !entry.startsWith('.'))).toEqual(['callboard-client']);
  expect(unpeered.split('\n')).toEqual([
    'found',
    expect.stringContaining("'graphql-sse'"),
    expect.stringContaining("'react'"),
    '',
  ]);
});

test('the root of callboard-client says what there is', async () => {
  const shown = await inNode(
    'callboard-client',
    `const { entryPoints } = await import('callboard-client');
    console.log(Object.keys(entryPoints).join(' '), Object.values(entryPoints).every((what) => what.length > 10));`,
  );
  expect(shown).toBe(`${LIBRARIES.map((library) => `callboard-client/${library}`).join(' ')} true\n`);
});

test('callboard opens a relay that serves the browser libraries', async () => {
  const statuses = await inNode(
    'callboard',
    `import { openCallboard, readConfig } from 'callboard';
    const callboard = await openCallboard({ config: readConfig({ CALLBOARD_SECRET: 's'.repeat(40) }, []) });
    const url = await callboard.listen();
    for (const library of ['runtime', 'caller', 'site']) {
      console.log((await fetch(url + '/clients/' + library + '.js')).status);
    }
    // The recorded examples of requests are a file of the package.
    console.log((await fetch(url + '/openapi.json')).status);
    await callboard.close();`,
  );
  expect(statuses.match(/^\d+$/gm)).toEqual(['200', '200', '200', '200']);
});

test('callboard has the same commands in its package as in a checkout, the demo included', async () => {
  const folder = packed.installed('callboard');
  const command = join(folder, 'node_modules/.bin/callboard');
  expect(await run(folder, command, 'schema')).toBe(await readFile(join(ROOT, 'schema.graphql'), 'utf8'));
  const bin = join(folder, 'node_modules/callboard/dist/bin.js');
  const words = JSON.stringify(['demo', '--browser', 'none', '--port', '0']);
  await writeFile(join(folder, 'demo.mjs'), `process.argv.push(...${words}); await import(${JSON.stringify(bin)});`);
  const demo = startExample(folder, 'demo.mjs', {});
  await demo.shows('carol');
  expect(await demo.stop()).toBe(0);
});

describe('the tarball alone', () => {
  test('starts a trial by npx, without a cache, and names itself in what can be pasted', async () => {
    await using empty = await emptyFolder();
    const env = { npm_config_cache: join(empty.path, 'cache'), XDG_STATE_HOME: join(empty.path, 'state') };
    const tarball = join(empty.path, 'callboard-0.1.0.tgz');
    await copyFile(packed.tarball('callboard'), tarball);
    const words = ['npx', '--yes', './callboard-0.1.0.tgz', '--port', '0'];
    const npx = startProgram(words, { cwd: empty.path, env, detached: true });
    const said = await npx.shows('export TOKEN=');
    const [, url = ''] = /listening at (\S+) /.exec(said) ?? [];
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect(said).toContain(`npx --package ${tarball} callboard console --url ${url}`);
    await npx.stop('SIGINT');
    await expect(fetch(`${url}/readyz`)).rejects.toThrow();
  });

  test('says on an old Node what to install', async () => {
    const bin = join(packed.installed('callboard'), 'node_modules/callboard/dist/bin.js');
    const old = join(ROOT, 'test/http/kit/old-node.cjs');
    const ran = run(ROOT, process.execPath, '-r', old, bin, 'init');
    await expect(ran).rejects.toThrow('callboard needs Node 24 or newer; this is 20.20.2. https://nodejs.org');
  });

  test.each(['js', 'ts'])(
    'writes a project in %s that runs as written, for a person at the page too',
    async (language) => {
      await using empty = await emptyFolder();
      const project = join(empty.path, 'project');
      const callboard = join(packed.installed('callboard'), 'node_modules/.bin/callboard');
      await run(empty.path, callboard, 'init', 'project', `--${language}`);
      await expect(run(empty.path, callboard, 'init', 'project')).rejects.toThrow('project: has files already');
      const manifest = JSON.parse(await readFile(join(project, 'package.json'), 'utf8'));
      expect(resolve(project, manifest.dependencies.callboard.slice('file:'.length))).toBe(packed.tarball('callboard'));
      if (language === 'js') await run(project, 'npm', 'install', '--prefer-offline', '--no-audit', '--no-fund');
      else {
        await symlink(join(packed.installed('callboard'), 'node_modules'), join(project, 'node_modules'));
        await run(project, program('tsc'), '-p', '.', '--typeRoots', join(ROOT, 'node_modules/@types'));
      }
      const start = (script: string, env: Readonly<Record<string, string>>) =>
        startProgram([process.execPath, '--env-file=.env', `${script}.${language}`], { cwd: project, env });
      expect(manifest.scripts).toMatchObject({ start: `node --env-file=.env server.${language}` });
      const server = start('server', { PORT: '0' });
      const [, APP = ''] = /page +(\S+)\/\n/.exec(await server.shows('/console/')) ?? [];
      const client = start('client', { APP });
      await client.shows('connected');
      const page = await browser.newPage();
      await page.goto(APP);
      await page.waitForFunction("document.querySelector('#status').textContent === 'connected'");
      const call = start('call', { APP });
      await page.getByRole('button', { name: 'Allow' }).click();
      expect(await call.shows('page-1')).toMatch(
        /^desk-1 completed \{ count: 1 \}\npage-1 completed \{ shown: true \}/,
      );
      expect(await page.locator('li').allTextContents()).toEqual(['milk']);
      const refused = start('call', { APP });
      await page.getByRole('button', { name: 'Refuse' }).click();
      await refused.shows('page-1 failed The person at the page did not agree.');
      expect(await statusAs('elsewhere.example', `${APP}/token`)).toBe(421);
      await page.close();
      await client.stop('SIGINT');
      await server.stop('SIGINT');
    },
  );
});

test('the example with Express passes its own test; npm run examples runs them all', async () => {
  await using empty = await emptyFolder();
  const modules = join(packed.installed('callboard'), 'node_modules');
  await cp(join(ROOT, 'examples/express-attach'), empty.path, { recursive: true });
  await symlink(modules, join(empty.path, 'node_modules'));
  if (!existsSync(join(modules, 'express')))
    await symlink(join(ROOT, 'node_modules/express'), join(modules, 'express'));
  expect(await run(empty.path, process.execPath, '--test')).toContain('fail 0');
});

test('the examples of docs/clients.md run unchanged', async () => {
  await using relay = await startRealRelay();
  const folder = packed.installed('callboard-client');
  const names = ['client.mjs', 'call.mjs', 'host.mjs', 'viewer.mjs', 'admin.mjs', 'live.mjs'];
  expect(await writeExamples(folder)).toEqual(names);
  const token = await relay.token('alice', 'connect', 'invoke', 'host');
  const asAlice = { RELAY: relay.url, TOKEN: token, USER_ID: 'alice' };
  const client = startExample(folder, 'client.mjs', asAlice);
  await client.shows('connected');
  await startExample(folder, 'call.mjs', asAlice).shows("completed { added: 'milk' }");
  const host = startExample(folder, 'host.mjs', asAlice);
  await host.shows('published ');
  const session = await openSession(relay.url, token);
  const viewer = startExample(folder, 'viewer.mjs', { RELAY: relay.url, ...session });
  await viewer.shows('read all state again: the stream is live');
  await startExample(folder, 'host.mjs', asAlice).shows('published ');
  await viewer.shows('read all state again: event');
  await viewer.stop();
  await startExample(folder, 'admin.mjs', { RELAY: relay.url, TOKEN: relay.admin }).shows('alice kiosk-1 CONNECTED');
  await startExample(folder, 'live.mjs', asAlice).shows('kiosk-1');
  expect(await client.stop()).toBe(0);
});

/** Sends a request to the address under another name of its host, and resolves with the status. */
async function statusAs(host: string, url: string): Promise<number | undefined> {
  const [response] = await once(get(url, { headers: { host } }), 'response');
  response.resume();
  return response.statusCode;
}

/**
 * Opens a session of the site that host.mjs registers. Returns the session and the token of its first grant as
 * environment variables of a viewer.
 */
async function openSession(relay: string, token: string): Promise<{ SESSION_ID: string; TOKEN: string }> {
  const answer = await fetch(`${relay}/sites/board/sessions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: '{}',
  });
  const { session_id: sessionId, token: grant } = (await answer.json()) as { session_id: string; token: string };
  return { SESSION_ID: sessionId, TOKEN: grant };
}
