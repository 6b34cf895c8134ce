/** Tests that every file, link and section that a document names exists. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
const DECISIONS = readdirSync(join(ROOT, 'docs/decisions')).map((name) => `docs/decisions/${name}`);
const PAGES = readdirSync(join(ROOT, 'docs')).flatMap((name) => (name.endsWith('.md') ? [`docs/${name}`] : []));
const GLOSSARY = 'docs/glossary.md';

const read = (page: string): string => readFileSync(join(ROOT, page), 'utf8');
const missing = (paths: readonly string[]): readonly string[] => paths.filter((path) => !existsSync(join(ROOT, path)));

/** Returns the repository paths that a page writes as code. Patterns such as `lua/<room>.lua` are not counted. */
function codePaths(page: string): readonly string[] {
  return [...read(page).matchAll(/`((?:src|test|faults|bench|docs|scripts)\/[\w./-]*)`/g)].map(([, path = '']) => path);
}

/**
 * Returns the targets of a page's relative links and pictures, without fragments, as paths from the root of the
 * repository.
 */
function linkedPaths(page: string): readonly string[] {
  const links = [...read(page).matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)];
  const pictures = [...read(page).matchAll(/\b(?:src|srcset)="([^"]+)"/g)];
  const targets = [...links, ...pictures].map(([, target = '']) => target);
  return targets.filter((target) => !/^[a-z]+:/.test(target)).map((target) => join(dirname(page), target));
}

/** Returns a page's links to sections. Each has the page that it leads to and the fragment. */
function linkedSections(page: string): readonly { readonly to: string; readonly fragment: string }[] {
  const links = [...read(page).matchAll(/\]\(([^)#\s:]*)#([^)]+)\)/g)];
  return links.map(([, target = '', fragment = '']) => ({
    to: target === '' ? page : join(dirname(page), target),
    fragment,
  }));
}

/** Returns the fragments that GitHub makes of a page's headings. */
function fragments(page: string): readonly string[] {
  const headings = [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
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
    'deploy/README.md',
    ...PAGES,
    ...DECISIONS,
  ])('%s links to files that exist', (page) => {
    expect(missing(linkedPaths(page))).toEqual([]);
  });

  test.each(['README.md', 'PROTOCOL.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', ...PAGES])(
    '%s links to sections that exist',
    (page) => {
      const broken = linkedSections(page).filter(({ to, fragment }) => !fragments(to).includes(fragment));
      expect(broken).toEqual([]);
    },
  );

  test('are found at all', () => {
    expect(linkedSections('docs/settings.md').length).toBeGreaterThan(0);
    expect(linkedPaths('README.md')).toContain('docs/pictures/overview-dark.svg');
    expect(codePaths('ARCHITECTURE.md').length).toBeGreaterThan(50);
    expect(linkedPaths('ARCHITECTURE.md')).toContain(GLOSSARY);
  });
});

test('every page of the documentation is linked from README or from another page', () => {
  const linked = new Set(['README.md', ...PAGES].flatMap((page) => linkedPaths(page).filter((to) => to !== page)));
  expect(PAGES.filter((page) => !linked.has(page))).toEqual([]);
});

test('README has at most 10 KB', () => {
  expect(Buffer.byteLength(read('README.md'))).toBeLessThanOrEqual(10 * 1024);
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
