/** Tests what a release is made of: the identity of the project, links of packed pages, changesets and workflows. */
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { datedChangelog, nextRelease, nextVersion, notesOf, readChangeset } from '../../scripts/release/changesets.ts';
import { namedFiles, placeholdersIn, readIdentity } from '../../scripts/release/identity.ts';
import { packedText } from '../../scripts/release/packed-links.ts';

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

describe('the identity of the project', () => {
  test('is written everywhere from project.json', () => {
    for (const { page, now, text } of namedFiles()) expect([page, now]).toEqual([page, text]);
  });

  test('is named in no other file', () => {
    const { domain, repository, holder } = readIdentity();
    const places = namedFiles().map(({ page }) => page);
    const generated = ['project.json', 'frames.schema.json'];
    const files = execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
    const others = files.filter((file) => !places.includes(file) && !generated.includes(file));
    const named = others.filter((file) => {
      const text = read(file);
      return [domain, new URL(repository).hostname, holder].some((name) => text.includes(name));
    });
    expect(named.filter((file) => file !== 'test/release/release.test.ts')).toEqual([]);
  });

  test('reaches every place when it changes', () => {
    const other = {
      decided: true,
      domain: 'relay.acme.io',
      repository: 'https://git.acme.io/acme/relay',
      holder: 'Acme & Sons',
    };
    const texts = new Map(namedFiles(other).map(({ page, text }) => [page, text]));
    const { domain } = readIdentity();
    for (const text of texts.values()) expect(text).not.toContain(domain);
    const manifest: unknown = JSON.parse(texts.get('package.json') ?? '');
    expect(manifest).toMatchObject({
      author: 'Acme & Sons',
      homepage: 'https://relay.acme.io',
      repository: { url: 'git+https://git.acme.io/acme/relay.git' },
      bugs: { url: 'https://git.acme.io/acme/relay/issues' },
    });
    expect(texts.get('LICENSE')).toContain('2026 Acme & Sons\n');
    expect(texts.get('SECURITY.md')).toContain('security@relay.acme.io,');
  });

  test('has placeholders as long as a name is reserved or nobody has decided', () => {
    const decided = { decided: true, domain: 'acme.io', repository: 'https://git.acme.io/a/b', holder: 'Acme' };
    expect(placeholdersIn(decided)).toEqual([]);
    expect(placeholdersIn({ ...decided, decided: false })).toEqual([expect.stringContaining('a person decides')]);
    for (const domain of ['callboard.example', 'example.com', 'acme.test', 'acme.invalid'])
      expect(placeholdersIn({ ...decided, domain })).toEqual([`project.json: domain has the placeholder ${domain}`]);
    const repository = 'https://acme.example/a/b';
    expect(placeholdersIn({ ...decided, repository })).toEqual([expect.stringContaining('repository')]);
    for (const domain of ['notexample.com', 'contest.io']) expect(placeholdersIn({ ...decided, domain })).toEqual([]);
  });
});

describe('links of packed pages', () => {
  const places = new Map([
    ['README.md', 'README.md'],
    ['docs/calls.md', 'docs/calls.md'],
    ['PROTOCOL.md', 'PROTOCOL.md'],
  ]);
  const packed = { places, repository: 'https://git.acme.io/a/b', tag: 'v1.2.3' };

  test('lead to files of the package, or to the tag of the repository', () => {
    const text = '[a](../PROTOCOL.md#x) [b](../src/bin.ts) [c](#here) [d](https://other.io/x)\n';
    expect(packedText(text, { ...packed, page: 'docs/calls.md' })).toBe(
      '[a](../PROTOCOL.md#x) [b](https://git.acme.io/a/b/blob/v1.2.3/src/bin.ts) [c](#here) [d](https://other.io/x)\n',
    );
  });

  test('are absolute in README.md, where a picture has one form', () => {
    const text =
      '[a](docs/calls.md#x)\n<picture>\n  <source srcset="docs/dark.svg">\n  <img alt="b" src="docs/light.svg">\n</picture>\n';
    expect(packedText(text, { ...packed, page: 'README.md' })).toBe(
      '[a](https://git.acme.io/a/b/blob/v1.2.3/docs/calls.md#x)\n<img alt="b" src="https://git.acme.io/a/b/raw/v1.2.3/docs/light.svg">\n',
    );
  });

  test('of a page that moves start from its new place', () => {
    const moved = new Map([...places, ['docs/clients.md', 'clients/README.md']]);
    const page = { ...packed, places: moved, page: 'docs/clients.md' };
    expect(packedText('[a](calls.md)', page)).toBe('[a](../docs/calls.md)');
  });

  test('stay as they are in code', () => {
    const text = '```md\n[a](docs/b.md)\n```\n[a](docs/b.md)\n````\n```\n[a](docs/b.md)\n````\n';
    const link = 'https://git.acme.io/a/b/blob/v1.2.3/docs/b.md';
    expect(packedText(text, { ...packed, page: 'README.md' })).toBe(
      `\`\`\`md\n[a](docs/b.md)\n\`\`\`\n[a](${link})\n\`\`\`\`\n\`\`\`\n[a](docs/b.md)\n\`\`\`\`\n`,
    );
  });
});

describe('changesets', () => {
  const change = (kind: string, text: string) =>
    readChangeset(`${kind}.md`, `---\ncallboard: ${kind}\n---\n\n${text}\n`);
  const changes = [change('patch', 'One.'), change('minor', 'Two\nlines.')];

  test('are read, or refused by name', () => {
    expect(change('minor', 'Text.')).toEqual({ name: 'minor.md', kind: 'minor', text: 'Text.' });
    for (const content of ['Text.', "---\n'other': minor\n---\n\nText.", '---\ncallboard: huge\n---\n\nText.'])
      expect(() => readChangeset('a.md', content)).toThrow('.changeset/a.md: expected');
    expect(() => change('minor', ' ')).toThrow('.changeset/minor.md');
  });

  test('of the repository can all be read', () => {
    const names = readdirSync(join(ROOT, '.changeset')).filter((name) => name !== 'README.md');
    for (const name of names) expect(readChangeset(name, read(`.changeset/${name}`)).name).toBe(name);
    const [, example = ''] = /```md\n([^]*?)```/.exec(read('.changeset/README.md')) ?? [];
    expect(readChangeset('example.md', example).kind).toBe('minor');
  });

  test('make the next version', () => {
    const breaking = [...changes, change('major', 'Three.')];
    expect(nextVersion('0.1.2', changes.slice(0, 1))).toBe('0.1.3');
    expect(nextVersion('0.1.2', changes)).toBe('0.2.0');
    expect(nextVersion('0.1.2', breaking)).toBe('0.2.0');
    expect(nextVersion('1.1.2', changes)).toBe('1.2.0');
    expect(nextVersion('1.1.2', breaking)).toBe('2.0.0');
  });

  test('make a section of the changelog above the last one', () => {
    const release = { version: '0.2.0', changes, date: '2027-01-31' };
    const changelog = '# Changelog\n\nText.\n\n## 0.1.0 (2026-12-01)\n\n- Old.\n';
    expect(datedChangelog(changelog, release)).toBe(
      '# Changelog\n\nText.\n\n## 0.2.0 (2027-01-31)\n\n**New**\n\n- Two\n  lines.\n\n**Mended**\n\n- One.\n\n## 0.1.0 (2026-12-01)\n\n- Old.\n',
    );
    expect(notesOf(datedChangelog(changelog, release), '0.2.0')).toMatch(/^\*\*New\*\*[^]*- One\.$/);
  });

  test('join the section of a version that is not released', () => {
    const open = '# Changelog\n\n## 0.1.0 (unreleased)\n\n- Old.\n';
    const release = { version: '0.1.0', changes: changes.slice(0, 1), date: '2027-01-31' };
    expect(datedChangelog(open, release)).toBe(
      '# Changelog\n\n## 0.1.0 (2027-01-31)\n\n- Old.\n\n**Mended**\n\n- One.\n',
    );
    expect(datedChangelog(open, { ...release, changes: [] })).toBe('# Changelog\n\n## 0.1.0 (2027-01-31)\n\n- Old.\n');
    const now = { ...release, changes: [] };
    expect(nextRelease(open, now)).toEqual({ version: '0.1.0', changelog: datedChangelog(open, now) });
    const dated = datedChangelog(open, now);
    expect(nextRelease(dated, now)).toBeNull();
    expect(nextRelease(dated, { ...release, changes })?.version).toBe('0.2.0');
    expect(notesOf(read('CHANGELOG.md'), '0.1.0')).toMatch(/^The relay in direct mode/);
  });
});

describe('workflows of a hosted runner', () => {
  const JOB = z.object({
    environment: z.string().optional(),
    permissions: z.record(z.string(), z.string()).optional(),
    steps: z.array(
      z.strictObject({
        id: z.string().optional(),
        uses: z
          .string()
          .regex(/^[\w-]+\/[\w-]+@v\d+$/)
          .optional(),
        run: z.string().optional(),
        with: z.record(z.string(), z.unknown()).optional(),
        env: z.record(z.string(), z.string()).optional(),
        'working-directory': z.string().optional(),
      }),
    ),
  });
  const WORKFLOW = z.object({
    on: z.object({}),
    permissions: z.record(z.string(), z.string()),
    jobs: z.record(z.string(), JOB),
  });
  const workflow = (name: string) => WORKFLOW.parse(parse(read(`.github/workflows/${name}.yml`)));
  const scripts: Readonly<Record<string, string>> = JSON.parse(read('package.json')).scripts;

  test.each(['check', 'release'])('%s can read the repository only, and runs what exists', (name) => {
    const { permissions, jobs } = workflow(name);
    expect(permissions).toEqual({ contents: 'read' });
    for (const { run } of Object.values(jobs).flatMap(({ steps }) => steps)) {
      const [, script] = /npm run ([\w:]+)/.exec(run ?? '') ?? [];
      if (script !== undefined) expect(scripts).toHaveProperty(script);
      // What somebody else may name, such as a tag, is a variable and never part of a script.
      expect(run ?? '').not.toContain('${{');
    }
  });

  test('release publishes with provenance, after a person approved, exactly the files that were checked', () => {
    const { files, publish } = workflow('release').jobs;
    expect(files?.environment).toBeUndefined();
    expect(publish?.environment).toBe('release');
    expect(publish?.permissions).toMatchObject({ 'id-token': 'write', attestations: 'write' });
    const runs = publish?.steps.flatMap(({ run = [] }) => run) ?? [];
    const publishes = runs.filter((run) => run.startsWith('npm publish'));
    expect(publishes).toEqual(
      ['callboard-client', 'callboard'].map(
        (name) => `npm publish "release/${name}-$VERSION.tgz" --provenance --access public`,
      ),
    );
    expect(runs.indexOf('sha256sum --check SHA256SUMS')).toBeLessThan(runs.indexOf(publishes[0] ?? ''));
    // Where they are published to is a setting of the repository.
    expect(read('.github/workflows/release.yml')).not.toMatch(/\bregistry\.[a-z]|\bghcr\b/);
    const image = publish?.steps.find(({ id }) => id === 'image');
    expect(image?.with).toMatchObject({ file: 'deploy/Dockerfile', sbom: true, provenance: 'mode=max' });
  });
});
