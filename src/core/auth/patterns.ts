/** Compiles patterns with `*`, which policies and tokens use. */
import type { ActionPatterns } from './principal.ts';

const COMPILED = new WeakMap<ActionPatterns, Glob>();

/** Whether a text matches one of the patterns. A list of patterns is compiled only once. */
export function matchesAny(patterns: ActionPatterns, text: string): boolean {
  const known = COMPILED.get(patterns) ?? anyOf(patterns);
  COMPILED.set(patterns, known);
  return known(text);
}

/**
 * A compiled pattern: whether a text matches it. `*` matches any number of characters, including none. Every other
 * character matches itself.
 */
type Glob = (text: string) => boolean;

/** Compiles a pattern. Matching never backtracks: it takes linear time in the length of the text for each `*`. */
export function compileGlob(pattern: string): Glob {
  const parts = pattern.split('*');
  const first = parts[0] ?? '';
  if (parts.length === 1) return (text) => text === first;
  const last = parts[parts.length - 1] ?? '';
  const middle = parts.slice(1, -1).filter((part) => part !== '');
  return (text) => {
    if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false;
    return inOrder(middle, text.slice(first.length, text.length - last.length));
  };
}

function inOrder(parts: readonly string[], text: string): boolean {
  let from = 0;
  for (const part of parts) {
    const at = text.indexOf(part, from);
    if (at < 0) return false;
    from = at + part.length;
  }
  return true;
}

export function anyOf(patterns: readonly string[] | undefined): Glob {
  if (!patterns) return () => true;
  const globs = patterns.map(compileGlob);
  return (text) => globs.some((matches) => matches(text));
}
