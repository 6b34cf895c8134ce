/** Replaces members of an object for a test. */

/**
 * Returns a proxy of `thing` with some members replaced. Unlike a spread copy, it keeps a class's methods and their
 * private fields.
 */
export function changed<T extends object>(thing: T, change: Partial<T>): T {
  return new Proxy(thing, {
    get(target, name) {
      if (Object.hasOwn(change, name)) return Reflect.get(change, name) as unknown;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
