/**
 * Checks the structure of the sources: imports between folders, sizes of files, and what each kind of file must not
 * contain.
 */
import { describe, expect, it } from 'vitest';
import { filesWithoutFirstComment, hasFirstComment } from './architecture/first-comments.ts';
import { findCycle, importsOf, listSource, readSource, type SourceFile } from './architecture/imports.ts';
import { ROOMS, refusalOf, refusals, roomOf, strangeName } from './architecture/rules.ts';
import { SHARED_NAMES, sharedTypeNames } from './architecture/type-names.ts';

const LINES_MAX = 600;
const files = readSource();
const inRing = (ring: string): readonly SourceFile[] => files.filter(({ path }) => path.startsWith(ring));

describe('the sources', () => {
  it('are all read', () => {
    expect(files.length).toBeGreaterThan(50);
    expect(files.find(({ path }) => path === 'callboard.ts')?.own).toContain('core/create.ts');
  });

  it('have arrows between rings and rooms that point one way only', () => {
    expect(refusals(files)).toEqual([]);
  });

  it('have no cycle of files', () => {
    expect(findCycle(files)?.join(' -> ') ?? null).toBeNull();
  });

  it('import only files that exist', () => {
    const known = new Set(listSource());
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

  it('never write to the console', () => {
    const writers = files.filter(({ text }) => /\bconsole\s*\.\s*(log|info|warn|error|debug|trace)\b/.test(text));
    expect(writers.map(({ path }) => path)).toEqual([]);
  });

  it(`have no file longer than ${LINES_MAX} lines`, () => {
    const long = files
      .filter(({ path }) => !path.startsWith('generated/'))
      .map(({ path, text }) => ({ path, lines: text.trimEnd().split('\n').length }))
      .filter(({ lines }) => lines > LINES_MAX);
    expect(long).toEqual([]);
  });

  it('begin with a comment that says what the file is for', () => {
    expect(hasFirstComment("import a from 'a';\n\n/** The most rows. */\nconst ROWS = 5;\n")).toBe(false);
    expect(hasFirstComment('/** The most rows. */\nconst ROWS = 5;\n')).toBe(false);
    for (const folder of ['src', 'faults', 'bench', 'scripts'])
      expect([folder, filesWithoutFirstComment(readSource(folder))]).toEqual([folder, []]);
  });

  it('export by name only', () => {
    const defaults = files.filter(
      ({ path, text }) => !path.startsWith('generated/') && /^export default\b/m.test(text),
    );
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

describe('the programs in faults', () => {
  const programs = readSource('faults');

  it('are all read, and import only each other, the sources and the test kits', () => {
    expect(programs.length).toBeGreaterThan(20);
    const strange = programs.flatMap(({ path, own }) =>
      own.filter((to) => !/^(\.\.\/(src|test)\/|[a-z]+\/)/.test(to)).map((to) => `${path}: ${to}`),
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
    expect(strangeName('graphql/schema/rpc-invoke.ts')).toBeUndefined();
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
    ['core/rpc/rpc.ts', 'graphql/schema/schema.ts'],
    ['core/history/history.ts', 'core/rpc/rpc.ts'],
    ['core/errors.ts', 'protocol/frame.ts'],
    ['protocol/frame.ts', 'core/json.ts'],
    ['clients/runtime/index.ts', 'core/json.ts'],
    ['graphql/schema/users.ts', 'backends/memory/users.ts'],
    ['rest/handler.ts', 'core/rpc/rpc.ts'],
    ['gateway/link.ts', 'http/auth.ts'],
    ['somewhere/new.ts', 'core/json.ts'],
  ])('refuses %s importing %s', (from, to) => {
    expect(refusalOf(from, to)).toBeTypeOf('string');
  });

  it('finds a cycle', () => {
    const file = (path: string, ...own: string[]): SourceFile => ({ path, own, foreign: [], text: '' });
    expect(findCycle([file('a', 'b'), file('b', 'c', 'd'), file('c'), file('d', 'a')])).toEqual(['a', 'b', 'd', 'a']);
    expect(findCycle([file('a', 'b', 'c'), file('b', 'c'), file('c')])).toBeNull();
  });
});
