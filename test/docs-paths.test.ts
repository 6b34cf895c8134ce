import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
const DECISIONS = readdirSync(join(ROOT, 'docs/decisions')).map((name) => `docs/decisions/${name}`);
const PAGES = readdirSync(join(ROOT, 'docs')).flatMap((name) => (name.endsWith('.md') ? [`docs/${name}`] : []));
const GLOSSARY = 'docs/glossary.md';

const read = (page: string): string => readFileSync(join(ROOT, page), 'utf8');
const missing = (paths: readonly string[]): readonly string[] => paths.filter((path) => !existsSync(join(ROOT, path)));

/** The paths of this repository that a page writes as code. Patterns such as `lua/<room>.lua` are no paths. */
function codePaths(page: string): readonly string[] {
  return [...read(page).matchAll(/`((?:src|test|faults|bench|docs|scripts)\/[\w./-]*)`/g)].map(([, path = '']) => path);
}

/** The targets of a page's relative links, from the root of the repository, without fragments. */
function linkedPaths(page: string): readonly string[] {
  const targets = [...read(page).matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map(([, target = '']) => target);
  return targets.filter((target) => !/^[a-z]+:/.test(target)).map((target) => join(dirname(page), target));
}

describe('paths in the documents', () => {
  test.each(['ARCHITECTURE.md', 'CONTRIBUTING.md', ...PAGES, ...DECISIONS])('%s names files that exist', (page) => {
    expect(missing(codePaths(page))).toEqual([]);
  });

  test.each([
    'README.md',
    'PROTOCOL.md',
    'ARCHITECTURE.md',
    'CONTRIBUTING.md',
    'bench/README.md',
    ...PAGES,
    ...DECISIONS,
  ])('%s links to files that exist', (page) => {
    expect(missing(linkedPaths(page))).toEqual([]);
  });

  test('are found at all', () => {
    expect(codePaths('ARCHITECTURE.md').length).toBeGreaterThan(50);
    expect(linkedPaths('ARCHITECTURE.md')).toContain(GLOSSARY);
  });
});

describe('the glossary', () => {
  const entries = [...read(GLOSSARY).matchAll(/^- \*\*(.+?)\*\*: .*$/gm)];
  const terms = entries.map(([, term = '']) => term.replaceAll('`', '').toLowerCase());

  test('is sorted and has each term once', () => {
    expect(terms.length).toBeGreaterThan(90);
    expect(terms).toEqual([...new Set(terms)].sort());
  });

  test('says where to begin reading, in files that exist', () => {
    const places = entries.flatMap(([line]) => /\. `([\w./-]+\/?)`$/.exec(line)?.[1] ?? []);
    expect(places.length).toBeGreaterThan(90);
    expect(missing(places.map((path) => (/^(test|faults|docs)\//.test(path) ? path : `src/${path}`)))).toEqual([]);
  });
});

test('decisions have the numbers of their files, each once', () => {
  const numbers = DECISIONS.map((page) => Number(/(\d{4})-/.exec(page)?.[1]));
  expect(new Set(numbers).size).toBe(numbers.length);
  DECISIONS.forEach((page, i) => expect(read(page)).toMatch(new RegExp(`^# 0*${numbers[i]}[.:] `)));
});
