/** The label of a call: the program that made the call in a requester's name. */

/**
 * The program that made a call, as it described itself. A label is evidence and authorizes nothing. `kind`: the
 * interface through which the program called. Make labels with `callerLabel`.
 */
export type CallerLabel = { readonly kind: 'mcp'; readonly name: string; readonly version: string | null };

const LABEL_CHARS = 64;

/** Returns the program's name and version as one text for people; null if there is no label. */
export function programOf(label: CallerLabel | undefined): string | null {
  if (!label) return null;
  return label.version === null ? label.name : `${label.name} ${label.version}`;
}

/** Makes a label. Removes control characters from name and version, and cuts both at 64 characters. */
export function callerLabel({ kind, name, version }: CallerLabel): CallerLabel {
  const bounded = (text: string): string => text.replaceAll(/\p{Cc}/gu, '').slice(0, LABEL_CHARS);
  return { kind, name: bounded(name), version: version === null ? null : bounded(version) };
}
