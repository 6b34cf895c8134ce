/** Finds the original text of one member in a JSON text, so that a payload is shown exactly as it was received. */
import { endOfObject, endOfValue } from '../../protocol/json-scan.ts';

/** Returns the text of the member at this path of names; null if there is none. `text` is a JSON object. */
export function textAt(text: string, path: readonly string[]): string | null {
  let start = text.search(/\S/);
  for (const name of path) {
    const at = valueOf(text, start, name);
    if (at === null) return null;
    start = at;
  }
  const end = endOfValue(text, start, 0);
  return end < 0 ? null : text.slice(start, end);
}

/** Returns where the value of this member begins in the object at `start`; null if there is no such member. */
function valueOf(text: string, start: number, name: string): number | null {
  if (text[start] !== '{') return null;
  const wanted = JSON.stringify(name);
  let found: number | null = null;
  endOfObject(text, start, 0, (nameStart, nameEnd, from) => {
    if (text.slice(nameStart, nameEnd) === wanted) found = from;
    return endOfValue(text, from, 0);
  });
  return found;
}
