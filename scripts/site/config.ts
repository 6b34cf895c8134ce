/** Makes the configuration of VitePress: the menu, the search in the page, and headings named as on GitHub. */
import { REFERENCES, SECTIONS } from './pages.ts';

/** Returns the fragment that GitHub makes of a heading, to which the pages link. */
export function fragmentOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

/** Words of a question that say nothing about its subject. The search leaves them out. */
const WITHOUT_MEANING =
  'a an and are can do does for get how i if in is it me my of on or the to use what when where why with'.split(' ');
/** How much more, or less, the search counts a page. Lists of words would otherwise come before the guides. */
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
  // Its headings are codes, which are words of many questions.
  troubleshooting: 1,
  index: 1.5,
};

/** Returns the text of `.vitepress/config.mjs`. VitePress writes the functions of the search into the pages. */
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
    // The Markdown of each page lies beside it, as a file and not as another page.
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
