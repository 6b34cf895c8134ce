/**
 * Reads the project's domain, repository and copyright holder from project.json, and lists all files that contain them.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

const IDENTITY = z.strictObject({
  /** Whether a person has chosen the other values. Until then they are placeholders. */
  decided: z.boolean(),
  /** The host name of the site, and of the mail addresses for reports. */
  domain: z.hostname(),
  /** The URL of the repository, without `.git`. It must have `/issues`, `/blob/<tag>/` and `/raw/<tag>/` below it. */
  repository: z.url({ protocol: /^https$/ }),
  /** The copyright holder, as in LICENSE. */
  holder: z.string().min(1),
});

export type Identity = z.infer<typeof IDENTITY>;

/** Returns the content of project.json. Throws if it has another form. */
export function readIdentity(): Identity {
  return IDENTITY.parse(JSON.parse(readFileSync(at('project.json'), 'utf8')));
}

/** Matches host names that nobody can own (RFC 2606 and RFC 6761). */
const RESERVED = /(^|\.)(example(\.(com|net|org))?|invalid|localhost|test)$/;

/** Returns the reasons why the project cannot be published with this identity, one sentence each. */
export function placeholdersIn({ decided, domain, repository }: Identity): readonly string[] {
  const hosts = { domain, repository: new URL(repository).hostname };
  return [
    ...Object.entries(hosts).flatMap(([name, host]) =>
      RESERVED.test(host) ? [`project.json: ${name} has the placeholder ${host}`] : [],
    ),
    ...(decided ? [] : ['project.json: "decided" is false: a person decides on domain, repository and holder']),
  ];
}

type Mention = {
  readonly file: string;
  /** Matches the text that depends on the identity, by the text before and after it. It must match at least once. */
  readonly pattern: RegExp;
  readonly text: (identity: Identity) => string;
};

const siteOf = ({ domain }: Identity): string => `https://${domain}`;
const repositoryOf = ({ repository }: Identity): string => repository;

/** All places that contain the domain, the repository or the holder. */
const MENTIONS: readonly Mention[] = [
  {
    file: 'package.json',
    pattern: /(?<="type": "git",\s+"url": ")[^"]+(?=")/,
    text: ({ repository }) => `git+${repository}.git`,
  },
  { file: 'package.json', pattern: /(?<="homepage": ")[^"]+(?=")/, text: siteOf },
  {
    file: 'package.json',
    pattern: /(?<="bugs": \{\s+"url": ")[^"]+(?=")/,
    text: ({ repository }) => `${repository}/issues`,
  },
  { file: 'package.json', pattern: /(?<="author": ")[^"]+(?=")/, text: ({ holder }) => holder },
  { file: 'LICENSE', pattern: /(?<=^Copyright \(c\) \d{4} ).+$/m, text: ({ holder }) => holder },
  { file: 'CODE_OF_CONDUCT.md', pattern: /(?<=conduct@)[\w.-]+\w/, text: ({ domain }) => domain },
  {
    file: '.github/ISSUE_TEMPLATE/config.yml',
    pattern: /(?<=url: )https:\/\/\S+(?=\/security\/policy)/,
    text: repositoryOf,
  },
  { file: 'SECURITY.md', pattern: /(?<=security@)[\w.-]+\w/, text: ({ domain }) => domain },
  ...['alerts.yml', 'alerts.test.yml'].map((name) => ({
    file: `deploy/prometheus/${name}`,
    pattern: /(?<=runbook_url: )https:\/\/[^/]+/g,
    text: siteOf,
  })),
  { file: 'deploy/Dockerfile', pattern: /(?<=image\.source=")[^"]+(?=")/, text: repositoryOf },
  { file: 'deploy/Dockerfile', pattern: /(?<=image\.url=")[^"]+(?=")/, text: siteOf },
];

/** Returns each file that contains a part of the identity, with its present text and the text as it should be. */
export function namedFiles(identity: Identity = readIdentity()): readonly {
  readonly page: string;
  readonly file: string;
  readonly now: string;
  readonly text: string;
}[] {
  return [...new Set(MENTIONS.map(({ file }) => file))].map((page) => {
    const file = at(page);
    const now = readFileSync(file, 'utf8');
    const mentions = MENTIONS.filter((one) => one.file === page);
    const text = mentions.reduce((changed, { pattern, text: written }) => {
      if (changed.search(pattern) < 0) throw new Error(`${page} has no place for ${written(identity)}`);
      return changed.replace(pattern, () => written(identity));
    }, now);
    return { page, file, now, text };
  });
}

function at(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url));
}
