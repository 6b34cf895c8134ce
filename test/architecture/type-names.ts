/** Finds exported types of src that have the same name. */
import type { SourceFile } from './imports.ts';

/**
 * The names that two exported types may share, each with its reason. A reader who meets a name twice has to ask which
 * one is meant, so any other type takes a name of its own.
 */
export const SHARED_NAMES: Readonly<Record<string, string>> = {
  Clock: 'The client libraries run in browsers and cannot import core; both declare what they need of a clock.',
  Invocation: 'The public type of callboard/caller: the same thing as in core, as a program outside sees it.',
  JsonSchema: 'The public type of callboard/runtime, which may also be true or false; OpenAPI text has only objects.',
  Outcome: 'The public type of callboard/caller: the same thing as in core, with its result.',
  Page: 'The public type of callboard/admin: the same thing as in core, as GraphQL answers it.',
  RawJson: 'The public class of the libraries; the relay’s own also passes its text through `writeJson`, unparsed.',
  ReportedContext:
    'The public type of callboard/runtime, which a client reports; core has it with every member filled in.',
  ReportedWindow:
    'The public type of callboard/runtime, which a client reports; core has it with every member filled in.',
  SiteDefinition:
    'The public type of callboard/runtime, which a host defines; core has it with its defaults filled in.',
  SiteEvent: 'The public type of callboard/site: the same thing as in core, as a viewer receives it.',
  Scope: 'The scope of a token, which is public, and the admission scope inside the ledger of the memory backend.',
};

/**
 * The folders that are not checked. `backends/redis` exports no type to the rest of src, and uses Redis's own words:
 * reply, member, program.
 */
const LEFT_OUT = ['backends/redis/'];

const EXPORTED_TYPE = /^export (?:declare |abstract )*(?:type|interface|class|enum) (\w+)/gm;

/** Returns each name that more than one file exports as a type, with the files. */
export function sharedTypeNames(files: readonly SourceFile[]): ReadonlyMap<string, readonly string[]> {
  const places = new Map<string, string[]>();
  for (const { path, text } of files.filter(({ path: at }) => !LEFT_OUT.some((folder) => at.startsWith(folder)))) {
    for (const [, name = ''] of text.matchAll(EXPORTED_TYPE)) places.set(name, [...(places.get(name) ?? []), path]);
  }
  return new Map([...places].filter(([, paths]) => paths.length > 1));
}
