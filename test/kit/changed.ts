/** The same thing but for what is given: a class keeps its methods and what only they see, which a spread would lose. */
export function changed<T extends object>(thing: T, change: Partial<T>): T {
  return new Proxy(thing, {
    get(target, name) {
      if (Object.hasOwn(change, name)) return Reflect.get(change, name) as unknown;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
