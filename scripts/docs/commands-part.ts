/** Writes the generated part of docs/cli.md: all operator commands, from the table of verbs. */
import { usageOfArgs } from '../../src/cli/command.ts';
import type { Verb } from '../../src/cli/verb.ts';
import { VERBS } from '../../src/cli/verbs.ts';
import { table } from './table.ts';

/** Returns Markdown with one table of all verbs. */
export function commandsPart(): string {
  const rows = VERBS.map((verb) => [
    `\`${[verb.name, usageOfArgs(verb)].join(' ').trim()}\``,
    verb.brief,
    flagsOf(verb),
  ]);
  return table(['command', 'what it does', 'flags of its own'], rows);
}

function flagsOf({ flags = {} }: Verb): string {
  return Object.keys(flags)
    .map((name) => `\`--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}\``)
    .join(', ');
}
