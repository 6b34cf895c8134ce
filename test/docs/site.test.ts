/** Tests the sources of the site: the order of its pages, their links, the references and llms.txt. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { configText, fragmentOf } from '../../scripts/site/config.ts';
import { REFERENCES, SECTIONS, SITE_PAGES } from '../../scripts/site/pages.ts';
import { llmsText, siteTexts } from '../../scripts/site/write.ts';
import { schema } from '../../src/graphql/schema/schema.ts';

const ROOT = join(import.meta.dirname, '../..');
let texts: ReadonlyMap<string, string>;
beforeAll(async () => {
  texts = await siteTexts();
});

/** Returns the text without blocks and pieces of code. */
const withoutCode = (text: string): string =>
  text.replaceAll(/^( *)(`{3,})[^]*?^\1\2`*$/gm, '').replaceAll(/`[^`\n]*`/g, '');

test('the order to read in begins with five pages, and has each page of docs once', () => {
  expect(SECTIONS[0]?.pages).toHaveLength(5);
  const docs = readdirSync(join(ROOT, 'docs')).filter((name) => name.endsWith('.md'));
  const listed = SITE_PAGES.map(({ file }) => file).filter((file) => file.startsWith('docs/'));
  expect(listed.toSorted()).toEqual(docs.map((name) => `docs/${name}`).toSorted());
  expect(new Set(SITE_PAGES.map(({ name }) => name)).size).toBe(SITE_PAGES.length);
});

test('links lead to pages and sections of the site, or to absolute addresses', () => {
  const broken = [...texts].flatMap(([name, text]) =>
    [...withoutCode(text).matchAll(/\]\(([^)#\s]*)(?:#([^)]+))?\)/g)].flatMap(([, target = '', fragment]) => {
      if (/^https?:/.test(target)) return [];
      const to = target === '' ? name : join(name, '..', target).replace(/\.md$/, '');
      const page = texts.get(to);
      const headings = [...(page ?? '').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => fragmentOf(heading));
      return page !== undefined && (fragment === undefined || headings.includes(fragment))
        ? []
        : [`${name}: ${target}#${fragment}`];
    }),
  );
  expect(broken).toEqual([]);
  expect(texts.get('proxies')).toMatch(/\]\(https:\/\/\S+\/blob\/main\/deploy\//);
});

test('pictures are files of the site, in light and dark', () => {
  const home = texts.get('index') ?? '';
  expect(home).toContain('srcset="/pictures/overview-dark.svg"');
  expect(home).toContain('src="/console/overview-light.png"');
});

test('blocks of code have no marks of the tests, and nothing reads as a template', () => {
  for (const [name, text] of texts) {
    expect([name, text.match(/^ *`{3,}\w+ .+$/m)]).toEqual([name, null]);
    expect([name, withoutCode(text).includes('{{')]).toEqual([name, false]);
  }
});

test('the references have every route, operation and type', () => {
  const rest = texts.get('reference/rest') ?? '';
  expect(rest).toContain('### `POST /connections/{user_id}/{client_id}/actions/{action}`');
  expect(rest.match(/^### /gm)?.length).toBeGreaterThan(50);
  const operations = texts.get('reference/graphql') ?? '';
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  const names = roots.flatMap((type) => Object.keys(type?.getFields() ?? {}));
  expect(names.filter((name) => !operations.includes(`### ${name}\n`))).toEqual([]);
  const types = texts.get('reference/types') ?? '';
  expect(types).toContain('## DeliveryRecord\n');
  expect(types).toContain('| `COMPLETED` |');
});

test('llms.txt names each page as Markdown, with a sentence about it', () => {
  const lines = llmsText(texts)
    .split('\n')
    .filter((line) => line.startsWith('- '));
  expect(lines).toHaveLength(SITE_PAGES.length + REFERENCES.length);
  for (const line of lines) expect(line).toMatch(/^- \[[^\]]+\]\(https:\/\/[^/]+\/[\w/-]+\.md\): .{10,}\.$/);
});

test('the configuration of the generator is a program, with the fragments of GitHub', async () => {
  const source = `data:text/javascript,${encodeURIComponent(configText())}`;
  const { default: config } = await import(source);
  expect(config.markdown.anchor.slugify("What's `in` it?")).toBe(fragmentOf("What's `in` it?"));
  // Otherwise the search finds each page twice, once without the weight of its name.
  expect(config.srcExclude).toEqual(['public/**']);
  const { processTerm, boostDocument } = config.themeConfig.search.options.miniSearch.searchOptions;
  expect([processTerm('How'), processTerm('Token')]).toEqual([null, 'token']);
  expect(boostDocument('/install.html#x')).toBeGreaterThan(boostDocument('/glossary.html#x'));
});
