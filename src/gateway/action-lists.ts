/** Keeps the lists of actions that clients advertised most recently, so that equal lists are one object. */
import { BoundedMap } from '../core/bounded-map.ts';
import type { ActionAdvertisement } from '../core/connections/connection.ts';
import type { JsonText } from '../core/json.ts';

/** The greatest number of lists that are kept. Each version of each application that connects needs one. */
const LISTS = 64;
/**
 * The greatest length of a payload whose list is kept, in characters. The text of a list may be a slice of its payload,
 * which then stays in memory too. All kept payloads together have at most 4 Mi characters.
 */
const PAYLOAD_CHARS = 65_536;

type Parsed = {
  readonly payload: string;
  readonly parse: (json: JsonText) => readonly ActionAdvertisement[];
};

/**
 * Remembers parsed lists of actions by their JSON text. All tabs of an application advertise the same list: they share
 * one parsed object, and a list that is known is not parsed again when the tabs reconnect.
 */
export class ActionLists {
  readonly #lists = new BoundedMap<string, readonly ActionAdvertisement[]>({ most: LISTS, order: 'used' });

  /**
   * Returns the list for this text, which is part of `payload`. Calls `parse` if the list is not remembered. If `parse`
   * throws, nothing is remembered.
   */
  get(json: JsonText, { payload, parse }: Parsed): readonly ActionAdvertisement[] {
    if (payload.length > PAYLOAD_CHARS) return parse(json);
    const known = this.#lists.get(json);
    if (known) return known;
    const list = parse(json);
    this.#lists.set(json, list);
    return list;
  }

  get size(): number {
    return this.#lists.size;
  }
}
