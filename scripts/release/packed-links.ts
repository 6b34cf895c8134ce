/**
 * Rewrites the links of a Markdown page for a package or a site, in which files of the repository are missing or have
 * other places.
 */
import { posix } from 'node:path';

export type PackedPage = {
  /** The path of the page in the repository. */
  readonly page: string;
  /** The path in the package of each packed file, by the file's path in the repository. */
  readonly places: ReadonlyMap<string, string>;
  /** The URL of the repository, and the tag of the release. */
  readonly repository: string;
  readonly tag: string;
  /** The URL of the folder with the pictures of docs/. Absent: pictures are loaded from the repository. */
  readonly pictures?: string;
};

const PICTURE = /<picture>[^]*?(<img [^>]*>)[^]*?<\/picture>/g;
const LINK = /(?<=\]\()([^)#\s]+)((?:#[^)\s]*)?)(?=\))/g;
const SOURCE = /(?<=<img [^>]*\bsrc=")([^"]+)(?=")/g;
/** Matches code blocks in fences, whose content must not be changed. */
const FENCED = /^(`{3,})[^]*?^\1`*$/gm;

/**
 * Returns the page's text for the package. Links to packed files point to the files in the package. All other links
 * become absolute URLs in the repository at the tag, and so do all pictures, and all links of README.md, because
 * registries show README.md without the package. A `<picture>` becomes its `<img>`, because registries remove
 * `<picture>`.
 */
export function packedText(text: string, packed: PackedPage): string {
  const fences = text.match(FENCED) ?? [];
  const parts = text.split(FENCED).filter((_, i) => i % 2 === 0);
  return parts.map((part, i) => relinked(part, packed) + (fences[i] ?? '')).join('');
}

function relinked(text: string, { page, places, repository, tag, pictures }: PackedPage): string {
  const pathOf = (target: string): string => posix.join(posix.dirname(page), target);
  const own = places.get(page) ?? page;
  const isAbsolute = (target: string): boolean => /^([a-z]+:|\/|#)/.test(target);
  const shown =
    pictures === undefined
      ? text
          .replaceAll(PICTURE, '$1')
          .replaceAll(SOURCE, (target) => (isAbsolute(target) ? target : `${repository}/raw/${tag}/${pathOf(target)}`))
      : text.replaceAll(
          /(?<=\b(?:src|srcset)=")[^":]+(?=")/g,
          (target) => pictures + posix.relative('docs', pathOf(target)),
        );
  return shown.replaceAll(LINK, (_, target: string, fragment: string) => {
    if (isAbsolute(target)) return target + fragment;
    const place = own === 'README.md' ? undefined : places.get(pathOf(target).replace(/\/$/, ''));
    const to =
      place === undefined ? `${repository}/blob/${tag}/${pathOf(target)}` : posix.relative(posix.dirname(own), place);
    return to + fragment;
  });
}
