/**
 * Reads the changesets (files in .changeset that each describe one change for users), and computes the next version and
 * its section of CHANGELOG.md from them. The files have the format of the program `changesets`.
 */
import { z } from 'zod';

const KINDS = ['patch', 'minor', 'major'] as const;
type Kind = (typeof KINDS)[number];

export type Changeset = { readonly name: string; readonly kind: Kind; readonly text: string };

const FORM = /^---\n(?:'callboard'|"callboard"|callboard): *(\w+)\n---\n\n?([^]+)$/;

/** Returns the change that a file describes. Throws if the file has another format. */
export function readChangeset(name: string, content: string): Changeset {
  const [, kind, text = ''] = FORM.exec(content) ?? [];
  const parsed = z.enum(KINDS).safeParse(kind);
  if (!parsed.success || text.trim() === '')
    throw new Error(`.changeset/${name}: expected ---, callboard: ${KINDS.join('|')}, ---, and a text`);
  return { name, kind: parsed.data, text: text.trim() };
}

/**
 * Returns the version that follows these changes. Before 1.0, a breaking change gives a new minor version
 * (docs/releasing.md).
 */
export function nextVersion(version: string, changes: readonly Changeset[]): string {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  const greatest = Math.max(...changes.map(({ kind }) => KINDS.indexOf(kind)));
  const place = major === 0 ? Math.min(greatest, 1) : greatest;
  if (place === 2) return `${major + 1}.0.0`;
  return place === 1 ? `${major}.${minor + 1}.0` : `${major}.${minor}.${patch + 1}`;
}

const TITLES: Readonly<Record<Kind, string>> = { major: 'Breaking', minor: 'New', patch: 'Mended' };

export type Release = {
  readonly version: string;
  readonly changes: readonly Changeset[];
  /** The date as `2027-01-31`. */
  readonly date: string;
};

/**
 * Returns the changelog with the section of a release. If the changelog has a section of that version that is marked
 * `(unreleased)`, the section gets the date, and its text stays before the changes. Otherwise a new section is added
 * above the first one.
 */
export function datedChangelog(changelog: string, { version, changes, date }: Release): string {
  const groups = KINDS.toReversed().flatMap((kind) => {
    const lines = changes.filter((one) => one.kind === kind).map(({ text }) => `- ${text.replaceAll('\n', '\n  ')}`);
    return lines.length === 0 ? [] : [`**${TITLES[kind]}**\n\n${lines.join('\n')}\n`];
  });
  const heading = `## ${version} (${date})`;
  const open = `## ${version} (unreleased)`;
  const at = changelog.indexOf(open);
  if (at < 0) {
    const first = changelog.indexOf('\n## ') + 1;
    const before = first > 0 ? changelog.slice(0, first) : `${changelog.trimEnd()}\n\n`;
    return `${before}${[heading, '', ...groups].join('\n')}\n${first > 0 ? changelog.slice(first) : ''}`;
  }
  const next = changelog.indexOf('\n## ', at);
  const end = next < 0 ? changelog.length : next;
  const section = changelog.slice(at + open.length, end).trimEnd();
  const added = groups.length === 0 ? '' : `\n${groups.join('\n')}`;
  return `${changelog.slice(0, at)}${heading}${section}\n${added}${changelog.slice(end)}`;
}

/**
 * Returns the next version and the changelog with its section; null if there is nothing to release. The first release
 * keeps its version, whose section is still marked `(unreleased)`.
 */
export function nextRelease(
  changelog: string,
  { version: now, changes, date }: Release,
): { readonly version: string; readonly changelog: string } | null {
  const isOpen = changelog.includes(`## ${now} (unreleased)`);
  if (!isOpen && changes.length === 0) return null;
  const version = isOpen ? now : nextVersion(now, changes);
  return { version, changelog: datedChangelog(changelog, { version, changes, date }) };
}

/** Returns the section of a version, without its heading; an empty text if the changelog has none. */
export function notesOf(changelog: string, version: string): string {
  const [, section = ''] = changelog.split(new RegExp(`^## ${version.replaceAll('.', '\\.')} .*\n`, 'm'));
  return section.split(/^## /m)[0]?.trim() ?? '';
}
