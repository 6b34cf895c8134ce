/** The program that makes a call in a requester's name. */

/**
 * The program that made a call, as it described itself: evidence, and never an authorization. `kind`: the interface
 * through which it called. Make it with `callerLabel`.
 */
export type CallerLabel = { readonly kind: 'mcp'; readonly name: string; readonly version: string | null };

const LABEL_CHARS = 64;

/** Returns the program of a label with its version, as one text for people; null without a label. */
export function programOf(label: CallerLabel | undefined): string | null {
  if (!label) return null;
  return label.version === null ? label.name : `${label.name} ${label.version}`;
}

/** Makes a label: name and version without control characters, cut at 64 characters. */
export function callerLabel({ kind, name, version }: CallerLabel): CallerLabel {
  const bounded = (text: string): string => text.replaceAll(/\p{Cc}/gu, '').slice(0, LABEL_CHARS);
  return { kind, name: bounded(name), version: version === null ? null : bounded(version) };
}
