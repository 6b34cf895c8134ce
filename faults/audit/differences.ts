/** Collects the differences that an audit finds, and the amounts of shares that the audit counts. */

type Value = string | number;
/** The members of a ZSET or SET, or the fields of a HASH, with their values. */
type Members<V extends Value> = ReadonlyMap<string, V>;

/** Collects the differences in one partition. */
export class Differences {
  readonly found: string[] = [];
  readonly #tag: string;

  constructor(tag: string) {
    this.#tag = tag;
  }

  /** Adds a difference. `key`: the name of the key, without the tag of its partition. */
  add(key: string, says: string): void {
    this.found.push(`${key.startsWith(this.#tag) ? key : `${this.#tag}:${key}`} ${says}`.replaceAll('\0', '/'));
  }

  /** Compares one value, such as a counter. */
  equal(key: string, what: string, values: { readonly has: Value; readonly should: Value }): void {
    if (values.has !== values.should) this.add(key, `has ${what} ${values.has} instead of ${values.should}`);
  }

  /**
   * Compares all members of a key with those that it should have. `may`: returns whether it is no fault that a member
   * has another value, or is missing on one side.
   */
  members<V extends Value>(
    key: string,
    {
      has = new Map(),
      should = new Map(),
    }: { readonly has?: Members<V> | undefined; readonly should?: Members<V> | undefined },
    may: (member: string, has: V | undefined, should: V | undefined) => boolean = () => false,
  ): void {
    for (const member of new Set([...has.keys(), ...should.keys()])) {
      const [own, right] = [has.get(member), should.get(member)];
      if (own === right || may(member, own, right)) continue;
      if (right === undefined) this.add(key, `has ${member} (${own}), which should not be there`);
      else if (own === undefined) this.add(key, `lacks ${member} (${right})`);
      else this.add(key, `has ${member} at ${own} instead of ${right}`);
    }
  }

  /**
   * Compares the members of all keys of a kind. `may`: as in `members`, but its first argument is the rest of the key's
   * name.
   */
  keys<V extends Value>(
    kind: string,
    all: { readonly has: ReadonlyMap<string, Members<V>>; readonly should: ReadonlyMap<string, Members<V>> },
    may: (part: string, member: string, has: V | undefined, should: V | undefined) => boolean = () => false,
  ): void {
    for (const part of new Set([...all.has.keys(), ...all.should.keys()])) {
      const sides = { has: all.has.get(part), should: all.should.get(part) };
      this.members(part === '' ? kind : `${kind}:${part}`, sides, (...member) => may(part, ...member));
    }
  }
}

/** The amounts of the shares that Redis counts, as the fields of `meta` should have them. */
export class Shares {
  /** The minimum and maximum of each field: `<share>:<user's hash>`, or `<span>:<user's hash>`. */
  readonly #amounts = new Map<string, { readonly least: number; readonly most: number }>();

  /** Whether a name may have no mark, because the share `marks` had no room. */
  readonly marksRanOut: boolean;

  constructor({ marksRanOut }: { readonly marksRanOut: boolean }) {
    this.marksRanOut = marksRanOut;
  }

  /** Adds to the amount of a field. `most`: the maximum to add, if the stored data do not give an exact amount. */
  add(field: string, least: number, most = least): void {
    const before = this.#amounts.get(field) ?? { least: 0, most: 0 };
    this.#amounts.set(field, { least: before.least + least, most: before.most + most });
  }

  get(field: string): { readonly least: number; readonly most: number } {
    return this.#amounts.get(field) ?? { least: 0, most: 0 };
  }

  fields(): Iterable<string> {
    return this.#amounts.keys();
  }
}
