/** Generates the configuration of VitePress: the menu, the search, and anchors of headings like those of GitHub. */
import { REFERENCES, SECTIONS } from './pages.ts';

/** Returns the URL fragment that GitHub gives a heading. The pages link to headings by these fragments. */
export function fragmentOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

/** Words that say nothing about the subject of a question. The search ignores them. */
const WITHOUT_MEANING =
  'a an and are can do does for get how i if in is it me my of on or the to use what when where why with'.split(' ');
/** The weights of pages in the search. Without them, pages that are lists of words would rank before the guides. */
const WEIGHTS: Readonly<Record<string, number>> = {
  protocol: 0.3,
  'redis-rights': 0.5,
  runbooks: 0.3,
  options: 0.6,
  cli: 0.6,
  ...Object.fromEntries(REFERENCES.map(({ name }) => [name, 0.2])),
  ...Object.fromEntries(
    [
      ...['glossary', 'changelog', 'architecture', 'contributing', 'releasing', 'faults', 'simulation'],
      ...['neighbours', 'neighbours-measured', 'input-costs', 'measurements'],
    ].map((name) => [name, 0.15]),
  ),
  ...Object.fromEntries((SECTIONS[0]?.pages ?? []).map(({ name }) => [name, 1.5])),
  // A low weight, because the headings of this page are error codes, whose words occur in many questions.
  troubleshooting: 1,
  index: 1.5,
};

/** Returns the text of `.vitepress/config.mjs`. VitePress copies the search functions in it into the pages. */
export function configText(): string {
  const item = ({ name, title }: { readonly name: string; readonly title: string }) => ({
    text: title,
    link: `/${name}`,
  });
  const sidebar = [
    ...SECTIONS.map(({ title, pages }) => ({ text: title, items: pages.map(item) })),
    { text: 'References', items: REFERENCES.map(item) },
  ];
  const config = {
    title: 'callboard',
    description: 'Relays commands between callers and connected clients, and shows an operator what is true.',
    cleanUrls: true,
    // The folder contains the Markdown of each page as a file to download, which must not become another page.
    srcExclude: ['public/**'],
    ignoreDeadLinks: [/^https?:\/\/(localhost|127\.0\.0\.1)/.source],
    themeConfig: {
      nav: [
        { text: 'Start', link: '/install' },
        { text: 'REST', link: '/reference/rest' },
        { text: 'GraphQL', link: '/reference/graphql' },
      ],
      sidebar,
      outline: [2, 3],
      search: { provider: 'local' },
    },
  };
  return `const config = ${JSON.stringify(config, null, 2)};
${fragmentOf.toString()}
config.ignoreDeadLinks = config.ignoreDeadLinks.map((source) => new RegExp(source));
config.themeConfig.search.options = {
  miniSearch: {
    searchOptions: {
      fuzzy: 0.2,
      prefix: true,
      boost: { title: 6, text: 2, titles: 2 },
      processTerm: (term) => (${JSON.stringify(WITHOUT_MEANING)}.includes(term.toLowerCase()) ? null : term.toLowerCase()),
      boostDocument: (id) => (${JSON.stringify(WEIGHTS)})[id.replace(/^\\//, '').replace(/(\\.html)?(#.*)?$/, '')] ?? 1,
    },
  },
};
config.markdown = { anchor: { slugify: fragmentOf } };
export default config;
`;
}
