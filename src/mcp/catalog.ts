/**
 * Builds the catalog of one user: the actions that the user's clients advertise, as tools for agents. It is rebuilt in
 * short steps when the advertisements change, and its size counts in the user's share of advertised bytes.
 */
import { hash } from 'node:crypto';
import type { ActionAdvertisement, ClientType, Connection } from '../core/connections/connection.ts';
import {
  AGENT_CLIENT_SCHEMAS_CHARS,
  AGENT_DESCRIPTION_CHARS,
  AGENT_SCHEMAS_CHARS,
  AGENT_SEARCHED_ACTIONS,
  AGENT_TOOLS,
  AGENT_VARIANTS,
} from '../core/limits.ts';
import type { Holdings } from '../core/shares/shares.ts';
import { judgeSchema, type Judged } from './schemas.ts';
import { clientText } from './client-text.ts';
import { PLAIN_NAMES, ownNames, ownSchemas, type Placing } from './tool-arguments.ts';
import { plainName, toolName, type Tool } from './tools.ts';

/**
 * A client with the actions that it advertises. `live`: true if it is connected; false if it was connected until
 * recently.
 */
export type Advertiser = Pick<Connection, 'clientId' | 'clientType' | 'connectedAt' | 'actions'> & {
  readonly live: boolean;
};

/** The tool for an action, and how to split the arguments of the tool's calls. */
export type ActionTool = { readonly action: string; readonly tool: Tool; readonly placing: Placing };

/** An action that a search has found. `tool`: the name of its tool; null if it has none. */
type FoundAction = { readonly action: string; readonly tool: string | null; readonly says: string };

/** Whether the requester may invoke an action on clients of this type. */
export type Allowed = (action: string, clientType: ClientType) => boolean;

/** The part of a user's shares that a catalog uses. */
type CatalogShare = Pick<Holdings, 'refusal' | 'take' | 'release'>;

/** The part of a catalog that a requester may see. It remains the same object until its content changes. */
export type CatalogView = {
  /** The tools, in the order of their names. */
  readonly tools: readonly ActionTool[];
  readonly byName: ReadonlyMap<string, ActionTool>;
  /** The JSON text of each tool, in the order of `tools`. */
  readonly texts: readonly string[];
};

/**
 * An action as one or more clients advertise it, all in the same words. It does not refer to the advertisement, so that
 * the advertisement can be freed.
 */
type Variant = {
  readonly key: string;
  /**
   * The client that is named as the author of the texts. It does not change while other clients begin or cease to
   * advertise the same.
   */
  readonly by: string;
  /** The shown text. Null: none is shown, because the action has too many variants or the user's share is used up. */
  readonly text: string | null;
  /** The action's name and text in lower case, for searches. */
  readonly lowered: string;
  readonly schemaKey: string;
  /** The schema for the tool; null if the action has no tool. */
  readonly judged: Judged | null;
  readonly effects: ActionAdvertisement['effects'];
  readonly bytes: number;
  /**
   * How many characters of schemas this variant uses, of those that the whole list may have and of those that its
   * client may have.
   */
  readonly schemaChars: number;
};

/** A variant together with the clients that advertise it now. */
type Offered = { readonly variant: Variant; readonly types: Set<ClientType>; live: boolean };

/** An action with its variants, by the key of the variant. */
type Entry = { readonly name: string; readonly offered: Map<string, Offered>; readonly hasTool: boolean };

/**
 * An action while the catalog is being built. `samples`: for each variant whose text is shown, one advertisement of it.
 */
type Gathered = Entry & { readonly samples: Sample[] };
type Sample = { readonly action: ActionAdvertisement; readonly offered: Offered };

/** A list of actions together with the clients that advertise it. `by`: the first of these clients. */
type AdvertisedList = {
  readonly actions: Connection['actions'];
  readonly by: string;
  readonly types: ReadonlySet<ClientType>;
  readonly live: boolean;
};

/**
 * A client whose actions the catalog contains. The reference to its list is weak, so that the list can be freed with
 * the client.
 */
type KnownClient = {
  readonly clientId: string;
  readonly live: boolean;
  readonly actions: WeakRef<Connection['actions']>;
};

/**
 * The maximum work of one step. One unit is one character that is processed, or CHARS_COMPARED characters that are only
 * compared.
 */
const STEP_WORK = 32 * 1024;
const ACTION_WORK = 8;
const CHARS_COMPARED = 16;
/** The approximate bytes of a variant, without its texts. */
const VARIANT_BYTES = 300;
/** The maximum number of cached views of a catalog. Requesters with equal rights share one view. */
const VIEWS = 4;

const KEYS = new WeakMap<ActionAdvertisement, string>();

/**
 * Returns the key of the variant that an advertisement belongs to. Advertisements have equal keys if their tools would
 * look the same.
 */
function variantKey(action: ActionAdvertisement): string {
  const known = KEYS.get(action);
  if (known !== undefined) return known;
  const { summary, description, schema, effects } = action;
  const { readOnly = null, destructive = null, idempotent = null, openWorld = null } = effects ?? {};
  const key = digestOf(JSON.stringify([summary, description, schema, readOnly, destructive, idempotent, openWorld]));
  KEYS.set(action, key);
  return key;
}

/** Whether two advertisements have equal keys. It compares their texts, which is far cheaper than computing keys. */
function areAlike(one: ActionAdvertisement, other: ActionAdvertisement): boolean {
  return (
    one === other || (one.summary === other.summary && one.description === other.description && takeAlike(one, other))
  );
}

/** Whether the tools for two advertisements would have the same schema and the same hints. */
function takeAlike(
  { schema, effects: one }: ActionAdvertisement,
  { schema: its, effects: other }: ActionAdvertisement,
): boolean {
  if (schema !== its) return false;
  if (one === other) return true;
  const members = ['readOnly', 'destructive', 'idempotent', 'openWorld'] as const;
  return members.every((member) => (one?.[member] ?? null) === (other?.[member] ?? null));
}

function schemaKeyOf({ schema }: ActionAdvertisement): string {
  return schema === null ? '' : digestOf(schema);
}

function charsOf({ summary, description, schema }: ActionAdvertisement): number {
  return (summary?.length ?? 0) + (description?.length ?? 0) + (schema?.length ?? 0);
}

function digestOf(text: string): string {
  return hash('sha256', text, 'base64url');
}

/** The actions that the clients of one user advertise now or advertised until recently. */
export class Catalog {
  readonly #share: CatalogShare;
  /** The names of built-in tools, which no action's tool may have. */
  readonly #reserved: ReadonlySet<string>;
  #entries: ReadonlyMap<string, Entry> = new Map();
  #seen: readonly KnownClient[] = [];
  /** The views of requesters, by the requesters' rights. */
  #views = new Map<string, CatalogView>();
  #ofRequesters = new WeakMap<object, CatalogView>();
  #schemaChars = 0;
  #clientChars = new Map<string, number>();
  /** Whether clients advertise more than AGENT_SEARCHED_ACTIONS actions, so that some are missing here. */
  more = false;

  constructor(share: CatalogShare, reserved: ReadonlySet<string>) {
    this.#share = share;
    this.#reserved = reserved;
  }

  /** Whether the catalog contains exactly what these clients advertise. */
  isOf(clients: readonly Advertiser[]): boolean {
    return (
      clients.length === this.#seen.length &&
      clients.every(({ clientId, live, actions }, i) => {
        const seen = this.#seen[i];
        return seen?.clientId === clientId && seen.live === live && seen.actions.deref() === actions;
      })
    );
  }

  /**
   * Rebuilds the catalog from the advertisements of these clients. It yields between steps, each of which takes a few
   * milliseconds. The catalog changes only in the last step.
   */
  *update(clients: readonly Advertiser[]): Generator<void, void> {
    const entries = new Map<string, Gathered>();
    const lists = this.#listsOf(clients);
    let isWhole = false;
    try {
      // Actions that have a tool are added first, so that they keep it however many actions others advertise.
      const hadTool = (name: string): boolean => this.#entries.get(name)?.hasTool === true;
      yield* this.#takeOver(entries, lists, hadTool);
      this.more = yield* this.#takeOver(entries, lists, (name) => !hadTool(name));
      isWhole = true;
    } finally {
      // Frees the share of the variants that are not in the catalog that remains.
      const [kept, left] = isWhole ? [entries, this.#entries] : [this.#entries, entries];
      this.#giveBack(left, kept);
    }
    this.#entries = new Map([...entries].map(([key, { name, offered, hasTool }]) => [key, { name, offered, hasTool }]));
    this.#forgetViews();
    this.#seen = clients.map(({ clientId, live, actions }) => ({ clientId, live, actions: new WeakRef(actions) }));
  }

  /** Adds the actions for which `chosen` returns true. Returns whether there was no room for some of them. */
  *#takeOver(
    entries: Map<string, Gathered>,
    lists: readonly AdvertisedList[],
    chosen: (name: string) => boolean,
  ): Generator<void, boolean> {
    let isCut = false;
    let work = 0;
    for (const list of lists) {
      for (const action of list.actions) {
        work += ACTION_WORK;
        if (chosen(action.name)) {
          const entry = entries.get(action.name) ?? enter(entries, action.name);
          if (entry === null) isCut = true;
          else work += this.#offer(entry, list, action);
        }
        if (work < STEP_WORK) continue;
        work = 0;
        yield;
      }
    }
    return isCut;
  }

  /**
   * Returns the advertised lists, each once. Those of clients that are already in the catalog come first, then those of
   * clients that connected earlier. A new client therefore never displaces another one.
   */
  #listsOf(clients: readonly Advertiser[]): readonly AdvertisedList[] {
    const known = new Set(this.#seen.map(({ clientId }) => clientId));
    const rank = ({ clientId }: Advertiser): number => (known.has(clientId) ? 0 : 1);
    const sorted = clients.toSorted(
      (a, b) => rank(a) - rank(b) || a.connectedAt - b.connectedAt || (a.clientId < b.clientId ? -1 : 1),
    );
    return [...Map.groupBy(sorted, ({ actions }) => actions)].map(([actions, all]) => ({
      actions,
      by: all[0]?.clientId ?? '',
      types: new Set(all.map(({ clientType }) => clientType)),
      live: all.some(({ live }) => live),
    }));
  }

  /** Frees all of the catalog's share. */
  close(): void {
    this.#giveBack(this.#entries, new Map());
    this.#entries = new Map();
    this.#seen = [];
    this.#forgetViews();
  }

  #forgetViews(): void {
    this.#views = new Map();
    this.#ofRequesters = new WeakMap();
  }

  /** Adds an advertised action. Returns the amount of work this took. */
  #offer(entry: Gathered, list: AdvertisedList, action: ActionAdvertisement): number {
    const { offered, samples } = entry;
    const chars = charsOf(action);
    const known = samples.find((sample) => areAlike(sample.action, action))?.offered;
    if (known) add(known, list);
    if (known || samples.length === AGENT_VARIANTS) {
      if (!known) this.#offerOther(entry, list, action);
      return Math.ceil(chars / CHARS_COMPARED);
    }
    const key = variantKey(action);
    const before = this.#before(entry, key);
    const made = offeredBy(list, before ?? this.#variant(key, { by: list.by, action, hasTool: entry.hasTool }));
    offered.set(key, made);
    samples.push({ action, offered: made });
    return before ? chars : 2 * chars;
  }

  /** Adds an action whose words differ from those of the first AGENT_VARIANTS variants. Its texts are not shown. */
  #offerOther(entry: Gathered, list: AdvertisedList, action: ActionAdvertisement): void {
    const alike = entry.samples.find((sample) => takeAlike(sample.action, action))?.offered.variant;
    const key = alike ? `other ${alike.key}` : UNKNOWN;
    const known = entry.offered.get(key);
    if (known) add(known, list);
    else
      entry.offered.set(
        key,
        offeredBy(list, this.#before(entry, key) ?? this.#otherVariant(entry, key, list.by, alike)),
      );
  }

  #before({ name, hasTool }: Gathered, key: string): Variant | null {
    const variant = this.#entries.get(name)?.offered.get(key)?.variant;
    return variant && (variant.judged !== null) === hasTool ? variant : null;
  }

  #variant(
    key: string,
    { by, action, hasTool }: { by: string; action: ActionAdvertisement; hasTool: boolean },
  ): Variant {
    const { name, effects } = action;
    const text = textOf(action);
    const schemaKey = schemaKeyOf(action);
    const judged = hasTool ? this.#withinList(judgeSchema(action.schema, by), by) : null;
    const schemaChars = judged?.schema ? judged.chars : 0;
    const bytes = VARIANT_BYTES + 2 * (name.length + text.length) + 2 * schemaChars;
    const variant = {
      key,
      by,
      text,
      lowered: `${name} ${text}`.toLowerCase(),
      schemaKey,
      judged,
      effects,
      bytes,
      schemaChars,
    };
    if (this.#share.refusal('advertised_bytes', bytes) === null) {
      this.#share.take('advertised_bytes', bytes);
      return variant;
    }
    this.#release(variant);
    const why = 'the share of advertised bytes of its user is used up';
    const open = judged && { schema: null, why, names: judged.names };
    return this.#withoutText({ ...variant, judged: open }, name);
  }

  /**
   * Creates a variant without texts. `alike`: a variant with the same schema and effects; if there is none, nothing
   * about the action is shown.
   */
  #otherVariant({ name, hasTool }: Gathered, key: string, by: string, alike: Variant | undefined): Variant {
    if (alike) return this.#withoutText({ ...alike, key, by }, name);
    const judged = hasTool ? NOT_LOOKED_AT : null;
    return this.#withoutText({ key, by, schemaKey: UNKNOWN, judged, effects: undefined }, name);
  }

  /**
   * Returns a variant without texts. It takes a small part of the user's share, even if the share is used up, because
   * the number of such variants is limited.
   */
  #withoutText(variant: Omit<Variant, 'text' | 'lowered' | 'bytes' | 'schemaChars'>, name: string): Variant {
    this.#share.take('advertised_bytes', VARIANT_BYTES);
    return { ...variant, text: null, lowered: name.toLowerCase(), bytes: VARIANT_BYTES, schemaChars: 0 };
  }

  /**
   * Returns the judged schema, or a result without a schema if the list of tools, or its client's part of it, has no
   * room for more.
   */
  #withinList(judged: Judged, by: string): Judged {
    if (judged.schema === null) return judged;
    const { chars } = judged;
    const ofClient = (this.#clientChars.get(by) ?? 0) + chars;
    if (this.#schemaChars + chars > AGENT_SCHEMAS_CHARS || ofClient > AGENT_CLIENT_SCHEMAS_CHARS)
      return { schema: null, why: 'the list of tools has no room for more schemas', names: judged.names };
    this.#schemaChars += chars;
    this.#clientChars.set(by, ofClient);
    return judged;
  }

  #release({ by, schemaChars }: Pick<Variant, 'by' | 'schemaChars'>): void {
    const left = (this.#clientChars.get(by) ?? 0) - schemaChars;
    this.#schemaChars -= schemaChars;
    if (left > 0) this.#clientChars.set(by, left);
    else this.#clientChars.delete(by);
  }

  /** Frees the share of the variants in `entries` that are not in `kept`. */
  #giveBack(entries: ReadonlyMap<string, Entry>, kept: ReadonlyMap<string, Entry>): void {
    for (const [name, { offered }] of entries) {
      for (const [key, { variant }] of offered) {
        if (kept.get(name)?.offered.get(key)?.variant === variant) continue;
        this.#share.release('advertised_bytes', variant.bytes);
        this.#release(variant);
      }
    }
  }

  /**
   * Returns why a tool accepts any members instead of the schema of an action; null if it has the schema, or if the
   * catalog does not contain the action.
   */
  whyOpen(action: ActionAdvertisement): string | null {
    const entry = this.#entries.get(action.name);
    if (!entry) return null;
    const all = [...entry.offered.values()];
    const schemaKey = schemaKeyOf(action);
    const variant =
      entry.offered.get(variantKey(action))?.variant ?? all.find((one) => one.variant.schemaKey === schemaKey)?.variant;
    const why = variant ? variant.judged?.why : entry.offered.get(UNKNOWN)?.variant.judged?.why;
    if (typeof why === 'string') return why;
    const schemas = new Set(listedOf(all).map((one) => one.variant.schemaKey));
    return schemas.size > 1 ? 'clients advertise different schemas of this action' : null;
  }

  /**
   * Returns the part of the catalog that this requester may see. Requesters with equal rights get the same object until
   * its content changes.
   */
  view(requester: object, allowed: Allowed): CatalogView {
    const known = this.#ofRequesters.get(requester);
    if (known) return known;
    const shown = this.#viewOf(allowed);
    this.#ofRequesters.set(requester, shown);
    return shown;
  }

  #viewOf(allowed: Allowed): CatalogView {
    const seen = [...this.#entries].map(([name, { offered, hasTool }]) => {
      const mine = hasTool ? [...offered.values()].filter(({ types }) => mayCall(allowed, name, types)) : [];
      return { name, mine, rights: mine.map(({ variant }) => variant.key).join(' ') };
    });
    const key = digestOf(seen.map(({ rights }) => rights).join('\n'));
    const known = this.#views.get(key);
    if (known) return known;
    const isTaken = this.#takenNames();
    const tools = seen
      .filter(({ mine }) => mine.length > 0)
      .map(({ name, mine }) => toolOf(name, toolName(name, isTaken), mine))
      .sort((a, b) => (a.tool.name < b.tool.name ? -1 : 1));
    const byName = new Map(tools.map((tool) => [tool.tool.name, tool]));
    const shown = { tools, byName, texts: tools.map(({ tool }) => JSON.stringify(tool)) };
    if (this.#views.size >= VIEWS) this.#views.clear();
    this.#views.set(key, shown);
    return shown;
  }

  #takenNames(): (plain: string) => boolean {
    const withTool = [...this.#entries].filter(([, { hasTool }]) => hasTool).map(([name]) => name);
    const plain = Map.groupBy(withTool, plainName);
    return (name) => this.#reserved.has(name) || (plain.get(name)?.length ?? 0) > 1;
  }

  /**
   * Finds the actions whose name and text contain all these words (given in lower case), in the order of their names.
   * Yields between steps.
   */
  *find(
    words: readonly string[],
    { tools: shown }: CatalogView,
    allowed: Allowed,
  ): Generator<void, readonly FoundAction[]> {
    const tools = new Map(shown.map(({ action, tool }) => [action, tool.name]));
    const found: FoundAction[] = [];
    const weight = 1 + words.reduce((sum, { length }) => sum + length, 0);
    let work = 0;
    for (const [name, { offered }] of this.#entries) {
      const first = [...offered.values()].find(({ types, live }) => live && mayCall(allowed, name, types))?.variant;
      if (!first) continue;
      if (words.every((word) => first.lowered.includes(word)))
        found.push({ action: name, tool: tools.get(name) ?? null, says: marked(first) });
      work += first.lowered.length * weight;
      if (work < STEP_COMPARISONS) continue;
      work = 0;
      yield;
    }
    return found.sort((a, b) => (a.action < b.action ? -1 : 1));
  }
}

/** The maximum number of character comparisons in one step of a search. */
const STEP_COMPARISONS = 10_000_000;
const NOT_SHOWN = 'no description is shown.';
/** The key of the variant for all advertisements that were not examined. */
const UNKNOWN = 'unknown';
/**
 * The result for a schema that was not examined. Like an invalid schema, it does not affect what other variants list.
 */
const NOT_LOOKED_AT: Judged = {
  schema: null,
  why: `only the first ${AGENT_VARIANTS} variants of an action are looked at`,
  names: [],
};

/** Adds an entry for an action; null if there is no room for it. */
function enter(entries: Map<string, Gathered>, name: string): Gathered | null {
  if (entries.size >= AGENT_SEARCHED_ACTIONS) return null;
  const hasTool = entries.size < AGENT_TOOLS;
  const entry = { name, offered: new Map<string, Offered>(), hasTool, samples: [] };
  entries.set(name, entry);
  return entry;
}

function offeredBy({ types, live }: AdvertisedList, variant: Variant): Offered {
  return { variant, types: new Set(types), live };
}

function add(offered: Offered, { types, live }: AdvertisedList): void {
  for (const type of types) offered.types.add(type);
  offered.live ||= live;
}

function mayCall(allowed: Allowed, name: string, types: ReadonlySet<ClientType>): boolean {
  return types.values().some((type) => allowed(name, type));
}

// Builds the tool of an action from its variants.

function textOf({ summary, description }: ActionAdvertisement): string {
  const texts = [summary, description].filter((text) => text !== null && text.trim() !== '');
  return texts.length === 0 ? 'no description.' : clientText(texts.join(' '), AGENT_DESCRIPTION_CHARS);
}

function marked({ by, text }: Variant): string {
  return cut(`From the client "${by}": ${text ?? NOT_SHOWN}`, AGENT_DESCRIPTION_CHARS);
}

function describe(variants: readonly Variant[]): string {
  const several =
    variants.length < 2
      ? ''
      : 'Clients describe this action differently. It takes the arguments of the client that runs it: see describe_action. ';
  const withText = variants.filter(({ text }) => text !== null);
  const shown = withText.length > 0 ? withText : variants.slice(0, 1);
  return cut(several + shown.map(marked).join(' '), AGENT_DESCRIPTION_CHARS);
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`;
}

/** Returns the variants that determine a tool's schema: those with a valid schema, or all if none has one. */
function listedOf(offered: readonly Offered[]): readonly Offered[] {
  const good = offered.filter(({ variant }) => variant.judged?.schema != null);
  return good.length > 0 ? good : offered;
}

function toolOf(action: string, name: string, offered: readonly Offered[]): ActionTool {
  const sorted = offered.toSorted((a, b) => (a.variant.key < b.variant.key ? -1 : 1));
  const all = sorted.map(({ variant }) => variant);
  const names = ownNames(new Set(all.flatMap(({ judged }) => judged?.names ?? [])));
  const { inputSchema, placing } = shapeOf(listedOf(sorted), names);
  const description = describe(all);
  return { action, placing, tool: { name, title: action, description, inputSchema, annotations: annotationsOf(all) } };
}

/**
 * Returns the input schema of a tool. Hosts refuse a schema whose root is a combination of others, so such a schema
 * becomes that of the member `params`. If clients have different schemas, the tool accepts any members.
 */
function shapeOf(
  offered: readonly Offered[],
  names: Placing['names'],
): { readonly inputSchema: Tool['inputSchema']; readonly placing: Placing } {
  const placing: Placing = { within: 'members', names };
  const [first, ...others] = offered.map(({ variant }) => variant);
  const schema = first?.judged?.schema;
  if (!schema || others.some(({ schemaKey }) => schemaKey !== first.schemaKey))
    return { inputSchema: { type: 'object', properties: ownSchemas(names) }, placing };
  if (schema['anyOf'] === undefined) {
    const properties = { ...(schema['properties'] as object | undefined), ...ownSchemas(names) };
    return { inputSchema: { ...schema, type: 'object', properties }, placing };
  }
  return {
    inputSchema: {
      type: 'object',
      properties: { params: schema, ...ownSchemas(PLAIN_NAMES) },
      required: ['params'],
      additionalProperties: false,
    },
    placing: { within: 'params', names: PLAIN_NAMES },
  };
}

/** Returns the hints for a tool with these variants. An action without declared effects is assumed to do anything. */
function annotationsOf(variants: readonly Variant[]): Tool['annotations'] {
  const effects = variants.map((variant) => variant.effects);
  return {
    readOnlyHint: effects.every((effect) => effect?.readOnly === true),
    destructiveHint: effects.some((effect) => effect?.destructive !== false && effect?.readOnly !== true),
    idempotentHint: effects.every((effect) => effect?.idempotent === true),
    openWorldHint: effects.some((effect) => effect?.openWorld !== false),
  };
}
