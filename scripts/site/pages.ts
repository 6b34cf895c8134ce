/** Lists the pages of the site in reading order. Each page of docs/ is in the list exactly once. */

/** A page: its file in the repository, its name in the URL, and its title in the menu. */
export type SitePage = { readonly file: string; readonly name: string; readonly title: string };
export type SiteSection = { readonly title: string; readonly pages: readonly SitePage[] };

const doc = (name: string, title: string): SitePage => ({ file: `docs/${name}.md`, name, title });
const root = (file: string, name: string, title: string): SitePage => ({ file, name, title });

export const SECTIONS: readonly SiteSection[] = [
  {
    title: 'Start here',
    pages: [
      doc('install', 'Install and first call'),
      doc('calls', 'Clients and calls'),
      doc('console', 'Watch it in the console'),
      doc('testing', 'Test your program'),
      doc('troubleshooting', 'When something is wrong'),
    ],
  },
  {
    title: 'Build',
    pages: [
      doc('clients', 'Client libraries'),
      doc('kiosk', 'Recipe: a kiosk with approval'),
      doc('agents', 'Agents over MCP'),
      doc('sites', 'Sites'),
      doc('rest', 'REST'),
      doc('graphql', 'GraphQL'),
      doc('graphql-clients', 'GraphQL from a program'),
      doc('cli', 'Command line'),
    ],
  },
  {
    title: 'Run',
    pages: [
      doc('settings', 'Settings'),
      doc('tokens', 'Tokens'),
      doc('security', 'Security'),
      doc('stopping', 'Stopping calls'),
      doc('durable', 'Data directory'),
      doc('shared-mode', 'Shared mode'),
      doc('redis-rights', 'Rights in Redis'),
      doc('proxies', 'Behind a proxy'),
      doc('operating', 'Operating'),
      doc('asking', 'Asking a relay'),
      doc('metrics', 'Metrics'),
      doc('capacity', 'Capacity'),
      doc('scale', 'Scale'),
      doc('runbooks', 'Runbooks'),
      doc('tracing', 'Tracing'),
      doc('upgrading', 'Upgrading'),
      doc('compatibility', 'Compatibility'),
    ],
  },
  {
    title: 'Look up',
    pages: [
      doc('options', 'Options of the libraries'),
      doc('limits', 'Limits'),
      doc('shares', 'Shares'),
      doc('glossary', 'Glossary'),
      root('PROTOCOL.md', 'protocol', 'Link protocol'),
      root('CHANGELOG.md', 'changelog', 'Changelog'),
    ],
  },
  {
    title: 'What it rests on',
    pages: [
      doc('performance', 'Performance'),
      doc('measurements', 'Measurements'),
      doc('faults', 'Faults'),
      doc('simulation', 'Simulation'),
      doc('neighbours', 'Hostile users'),
      doc('neighbours-measured', 'Hostile users, measured'),
      doc('input-costs', 'What one input may cost'),
      root('ARCHITECTURE.md', 'architecture', 'Architecture'),
      root('CONTRIBUTING.md', 'contributing', 'Contributing'),
      doc('releasing', 'Releasing'),
      root('SECURITY.md', 'security-policy', 'Security policy'),
    ],
  },
];

export const SITE_PAGES: readonly SitePage[] = SECTIONS.flatMap(({ pages }) => pages);

/** The menu entries of the pages that are generated from the OpenAPI document and the GraphQL schema. */
export const REFERENCES = [
  { name: 'reference/rest', title: 'REST: every route' },
  { name: 'reference/graphql', title: 'GraphQL: operations' },
  { name: 'reference/types', title: 'GraphQL: types' },
] as const;
