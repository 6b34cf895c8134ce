/**
 * Checks the structure of the sources: imports between folders, sizes of files, and what each kind of file must not
 * contain.
 */
import { describe, expect, it } from 'vitest';
import { filesWithoutFirstComment, hasFirstComment } from './architecture/first-comments.ts';
import { findCycle, importsOf, listSource, readSource, type SourceFile } from './architecture/imports.ts';
import {
  DEMO_MAY,
  OWN_TIME,
  ROOMS,
  SIMULATED,
  refusalOf,
  refusals,
  roomOf,
  strangeName,
} from './architecture/rules.ts';
import { listHelpers, luaLengths, namesTwice, NAMES_TWICE, suitcaseFault, suitcases } from './architecture/subjects.ts';
import { SHARED_NAMES, sharedTypeNames } from './architecture/type-names.ts';
import { ownBounds } from './architecture/waits.ts';

const LINES_MAX = 600;
/** The most lines of a Lua file that holds the acts of a room. */
const LUA_LINES_MAX = 800;
const files = readSource();
const inRing = (ring: string): readonly SourceFile[] => files.filter(({ path }) => path.startsWith(ring));

describe('the sources', () => {
  it('are all read', () => {
    expect(files.length).toBeGreaterThan(50);
    expect(files.find(({ path }) => path === 'callboard.ts')?.own).toContain('core/core.ts');
  });

  it('have arrows between rings and rooms that point one way only', () => {
    expect(refusals(files)).toEqual([]);
  });

  it('have no cycle of files', () => {
    expect(findCycle(files)?.join(' -> ') ?? null).toBeNull();
  });

  it('import only files that exist', () => {
    const beside = (folder: string): readonly string[] => listSource(folder).map((path) => `../${folder}/${path}`);
    const known = new Set([...listSource(), ...beside('generated'), ...beside('demo')]);
    const missing = files.flatMap(({ path, own }) => own.filter((to) => !known.has(to)).map((to) => `${path}: ${to}`));
    expect(missing).toEqual([]);
  });

  it('keep core and protocol free of packages and of Node', () => {
    const foreign = [...inRing('core/'), ...inRing('protocol/')].flatMap(({ path, foreign: names }) =>
      names.map((name) => `${path}: ${name}`),
    );
    expect(foreign).toEqual([]);
  });

  it('keep Redis out of everything but its own backend', () => {
    const users = files.filter(({ foreign }) => foreign.includes('ioredis')).map(({ path }) => path);
    expect(users.filter((path) => !path.startsWith('backends/redis/'))).toEqual([]);
  });

  it('read the environment and the command line in bin.ts alone', () => {
    const readers = files
      .filter(({ text }) => /\bprocess\s*\.\s*(env|argv)\b|NODE_ENV/.test(text))
      .map(({ path }) => path);
    expect(readers.filter((path) => path !== 'bin.ts')).toEqual([]);
  });

  it('take time, turns and random numbers from ports, so that a simulation can give them', () => {
    const own =
      /\b(Date\.now|performance\.now|Math\.random)\(|(?<![.\w])(setTimeout|setInterval|setImmediate|random(Bytes|UUID|Int))\(|new Date\(\)|getRandomValues/;
    const takers = files.filter(({ path, text }) => SIMULATED.test(path) && own.test(text));
    expect(takers.map(({ path }) => path)).toEqual(Object.keys(OWN_TIME).toSorted());
  });

  it('never write to the console, except where a client library warns of what no program listens to', () => {
    const writers = files.filter(({ text }) => /\bconsole\s*\.\s*(log|info|warn|error|debug|trace)\b/.test(text));
    expect(writers.map(({ path }) => path)).toEqual(['clients/link/advice.ts']);
  });

  it(`have no file longer than ${LINES_MAX} lines`, () => {
    const long = files
      .map(({ path, text }) => ({ path, lines: text.trimEnd().split('\n').length }))
      .filter(({ lines }) => lines > LINES_MAX);
    expect(long).toEqual([]);
  });

  it(`have no Lua file longer than ${LUA_LINES_MAX} lines`, () => {
    expect(luaLengths().filter(({ lines }) => lines > LUA_LINES_MAX)).toEqual([]);
  });

  it('are one subject each: no head says "also", and no file has three sections', () => {
    expect(suitcases(files)).toEqual([]);
    const section = '\n// Does another thing.\n\nconst a = 1;\n';
    expect(suitcaseFault(`/** Does a thing. Also does another. */\n${section}`)).toBeTypeOf('string');
    expect(suitcaseFault(`/** Does a thing. */\n${section}${section}${section}`)).toBeTypeOf('string');
    expect(suitcaseFault(`/** Does a thing. */\n${section}${section}\n/** Does so also here. */\n`)).toBeUndefined();
  });

  it('have no two files of one name in a ring, but for those listed with a reason', () => {
    expect(namesTwice(files).filter((name) => !Object.hasOwn(NAMES_TWICE, name))).toEqual([]);
    expect(Object.keys(NAMES_TWICE).filter((name) => !namesTwice(files).includes(name))).toEqual([]);
  });

  it('begin with a comment that says what the file is for', () => {
    expect(hasFirstComment("import a from 'a';\n\n/** The most rows. */\nconst ROWS = 5;\n")).toBe(false);
    expect(hasFirstComment('/** The most rows. */\nconst ROWS = 5;\n')).toBe(false);
    for (const folder of ['src', 'demo', 'faults', 'bench', 'scripts'])
      expect([folder, filesWithoutFirstComment(readSource(folder))]).toEqual([folder, []]);
  });

  it('export by name only', () => {
    const defaults = files.filter(({ text }) => /^export default\b/m.test(text));
    expect(defaults.map(({ path }) => path)).toEqual([]);
  });
});

describe('the exported types of src', () => {
  it('have names of their own, but for those listed with a reason', () => {
    const shared = [...sharedTypeNames(files)].filter(([name]) => !Object.hasOwn(SHARED_NAMES, name));
    expect(shared.map(([name, paths]) => `${name}: ${paths.join(', ')}`)).toEqual([]);
  });

  it('are listed only while two files export the name', () => {
    const shared = sharedTypeNames(files);
    expect(Object.keys(SHARED_NAMES).filter((name) => !shared.has(name))).toEqual([]);
  });

  it('are found in every form', () => {
    const file = (path: string, text: string): SourceFile => ({ path, text, own: [], foreign: [] });
    const text = ['type A = 1;', 'interface B {}', 'class C {}', 'abstract class D {}'].map((line) => `export ${line}`);
    const found = sharedTypeNames([file('x.ts', text.join('\n')), file('y.ts', text.reverse().join('\n'))]);
    expect([...found.keys()].sort()).toEqual(['A', 'B', 'C', 'D']);
    expect(sharedTypeNames([file('x.ts', 'type A = 1;'), file('y.ts', 'export type A = 1;')]).size).toBe(0);
  });
});

describe('the demo', () => {
  const demo = readSource('demo');

  it('imports only itself and what the published packages offer', () => {
    expect(demo.length).toBeGreaterThan(5);
    const strange = demo.flatMap(({ path, own }) =>
      own
        .filter((to) => to.startsWith('../') && !DEMO_MAY.some((prefix) => to.startsWith(prefix)))
        .map((to) => `${path}: ${to}`),
    );
    expect(strange).toEqual([]);
  });

  it('is in files of one subject each', () => {
    expect(suitcases(demo)).toEqual([]);
  });

  it(`is in files of at most ${LINES_MAX} lines, without cycles`, () => {
    const long = demo.filter(({ text }) => text.trimEnd().split('\n').length > LINES_MAX).map(({ path }) => path);
    expect([long, findCycle(demo)]).toEqual([[], null]);
  });
});

describe('the programs in faults', () => {
  const programs = readSource('faults');

  it('are all read, and import only each other, the sources, the test kits and the bundles for browsers', () => {
    expect(programs.length).toBeGreaterThan(20);
    const strange = programs.flatMap(({ path, own }) =>
      own
        .filter((to) => !/^(\.\.\/(src\/|test\/|scripts\/bundles\.ts)|[a-z]+\/)/.test(to))
        .map((to) => `${path}: ${to}`),
    );
    expect(strange).toEqual([]);
  });

  it('are imported by nothing in src', () => {
    const users = files.filter(({ text }) => /from '[./]*\.\.\/faults\//.test(text)).map(({ path }) => path);
    expect(users).toEqual([]);
  });

  it(`are in files of at most ${LINES_MAX} lines, without cycles`, () => {
    const long = programs.filter(({ text }) => text.trimEnd().split('\n').length > LINES_MAX).map(({ path }) => path);
    expect([long, findCycle(programs)]).toEqual([[], null]);
  });
});

describe('the tests', () => {
  const tests = readSource('test');
  /** The files that look for bounds. */
  const BOUNDS = ['architecture.test.ts', 'architecture/waits.ts'];

  it('keep their helper files in a kit folder', () => {
    const besides = ['run.ts', 'topologies.ts', 'architecture/', 'contract/', 'interop/'];
    const strange = tests
      .map(({ path }) => path)
      .filter((path) => !path.endsWith('.test.ts') && !/(^|\/)kit\//.test(path))
      .filter((path) => !besides.some((prefix) => path.startsWith(prefix)));
    expect(strange).toEqual([]);
  });

  it('import each other without cycles', () => {
    expect(findCycle(tests)?.join(' -> ') ?? null).toBeNull();
  });

  it('wait as long as all tests do, so that none depends on how fast the machine is', () => {
    expect(ownBounds(tests.filter(({ path }) => !BOUNDS.includes(path)))).toEqual([]);
    for (const text of [
      'expect.poll(look, { timeout: 5_000 })',
      'vi.setConfig({ testTimeout: 90_000 });',
      'page.setDefaultTimeout(15_000);',
      '}, 60_000);',
      'vi.waitFor(look)',
      'signToken({ user, ttlSeconds: 60, now: Date.now() })',
    ])
      expect(ownBounds([{ path: 'a', text }]), text).toHaveLength(1);
  });
});

describe('the helper files beside src', () => {
  const { helpers, files: beside } = listHelpers();
  const only = beside.filter(({ path }) => helpers.has(path));

  it('are all read', () => {
    expect(only.length).toBeGreaterThan(200);
    expect(helpers.has('test/kit/clock.ts')).toBe(true);
    expect(helpers.has('test/architecture.test.ts')).toBe(false);
  });

  it('are one subject each', () => {
    expect(suitcases(only)).toEqual([]);
  });

  it('have names of their own in their part of the tests or programs', () => {
    expect(namesTwice(only)).toEqual([]);
  });

  it(`have at most ${LINES_MAX} lines each`, () => {
    const long = only.filter(({ text }) => text.trimEnd().split('\n').length > LINES_MAX);
    expect(long.map(({ path }) => path)).toEqual([]);
  });
});

describe('rooms', () => {
  it('are the folders of core', () => {
    const rooms = new Set(files.map(({ path }) => roomOf(path)).filter((room) => room !== null));
    expect([...rooms].filter((room) => !Object.hasOwn(ROOMS, room))).toEqual([]);
  });

  it('have the same name in every ring', () => {
    expect(
      listSource()
        .map(strangeName)
        .filter((path) => path !== undefined),
    ).toEqual([]);
    expect(strangeName('graphql/schema/things.ts')).toBe('graphql/schema/things.ts');
    expect(strangeName('rest/operations/roomy.graphql')).toBe('rest/operations/roomy.graphql');
    expect(strangeName('graphql/schema/server.ts')).toBeUndefined();
  });
});

describe('this test', () => {
  it('sees every form of import, and none in comments', () => {
    const text = `
import { a } from './a.ts';
import type {
  B,
} from '../b.ts';
export { c } from "./c.ts";
import './d.ts';
const e = await import('./e.ts');
// import { f } from './f.ts';
/* import { g } from './g.ts'; */
const url = 'https://example'; import { h } from 'pkg';
`;
    const { own, foreign } = importsOf('x/y.ts', text);
    expect(own).toEqual(['x/a.ts', 'b.ts', 'x/c.ts', 'x/d.ts', 'x/e.ts']);
    expect(foreign).toEqual([]);
  });

  it.each([
    ['core/calls/calls.ts', 'graphql/schema/schema.ts'],
    ['core/history/history.ts', 'core/calls/calls.ts'],
    ['core/errors.ts', 'protocol/frames.ts'],
    ['protocol/frames.ts', 'core/json.ts'],
    ['clients/runtime/index.ts', 'core/json.ts'],
    ['graphql/schema/users.ts', 'backends/memory/users.ts'],
    ['backends/owned/routed.ts', 'backends/redis/open.ts'],
    ['rest/serve.ts', 'core/calls/calls.ts'],
    ['gateway/link.ts', 'http/authenticator.ts'],
    ['somewhere/new.ts', 'core/json.ts'],
    ['cli/main.ts', '../demo/demo.ts'],
    ['core/json.ts', '../generated/cli.ts'],
  ])('refuses %s importing %s', (from, to) => {
    expect(refusalOf(from, to)).toBeTypeOf('string');
  });

  it('finds a cycle', () => {
    const file = (path: string, ...own: string[]): SourceFile => ({ path, own, foreign: [], text: '' });
    expect(findCycle([file('a', 'b'), file('b', 'c', 'd'), file('c'), file('d', 'a')])).toEqual(['a', 'b', 'd', 'a']);
    expect(findCycle([file('a', 'b', 'c'), file('b', 'c'), file('c')])).toBeNull();
  });
});
