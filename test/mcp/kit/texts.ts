/** Finds the texts in a tool that a client may have written, and checks how they are marked. */
import { isRecord } from '../../../src/core/json.ts';
import { AGENT_DESCRIPTION_CHARS, AGENT_ENUM_CHARS } from '../../../src/core/limits.ts';
import { BUILTIN_TOOLS } from '../../../src/mcp/builtin-tools.ts';
import { ARGUMENT_SCHEMAS } from '../../../src/mcp/tool-arguments.ts';
import type { Tool } from '../../../src/mcp/tools.ts';

const HIDDEN = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\u200b\u2060-\u206f\ufeff\u{e0000}-\u{e0fff}]/u;
const NAME = /^[A-Za-z0-9_.-]{1,64}$/;
const OWN = new Set(JSON.stringify([ARGUMENT_SCHEMAS, BUILTIN_TOOLS]).match(/"(?:[^"\\]|\\.)*"/g));
const WORDS = new Set(['type', 'description', 'enum', 'items', 'anyOf', 'properties', 'required']);
const NUMBERS = ['minItems', 'maxItems', 'minimum', 'maximum', 'additionalProperties'];

/** Returns the texts of a tool that lack their bound, their cleaning or their mark. */
export function unmarkedTexts({ name, title, description, inputSchema }: Tool): readonly string[] {
  const faults: string[] = [];
  const marked = (text: unknown, most: number): void => {
    if (typeof text !== 'string') faults.push(`no text: ${JSON.stringify(text)}`);
    else if (OWN.has(JSON.stringify(text))) return;
    else if (!/^(?:Clients describe .*? )?From the client "[\w.:@~-]{1,128}": /.test(text))
      faults.push(`unmarked: ${text}`);
    else if (text.length > most || HIDDEN.test(text)) faults.push(`hidden or long: ${text}`);
  };
  const values = (all: readonly unknown[], description: unknown): void => {
    marked(description, AGENT_DESCRIPTION_CHARS + 160);
    for (const value of all)
      if (typeof value !== 'string' || value.length > AGENT_ENUM_CHARS || HIDDEN.test(value)) faults.push(`${value}`);
  };
  const walk = (schema: unknown): void => {
    if (Array.isArray(schema)) return schema.forEach(walk);
    if (!isRecord(schema)) return;
    for (const [word, value] of Object.entries(schema)) {
      if (word === 'description') marked(value, AGENT_DESCRIPTION_CHARS + 160);
      else if (word === 'enum' && Array.isArray(value)) values(value, schema['description']);
      else if (word === 'properties' && isRecord(value)) {
        const wrong = Object.keys(value).filter((key) => !NAME.test(key));
        faults.push(...wrong);
        Object.values(value).forEach(walk);
      } else if (word === 'required' && Array.isArray(value))
        faults.push(...value.filter((key) => !NAME.test(String(key))).map(String));
      else if (WORDS.has(word)) walk(value);
      else if (!NUMBERS.includes(word)) faults.push(`the member ${word}`);
      else if (typeof value === 'string') faults.push(`${word}: ${value}`);
      else walk(value);
    }
  };
  marked(description, AGENT_DESCRIPTION_CHARS);
  for (const text of [name, title ?? '']) if (!/^[A-Za-z0-9_.:-]{1,128}$/.test(text)) faults.push(text);
  walk(inputSchema);
  return faults;
}
