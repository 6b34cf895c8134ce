/**
 * What the writer asks of authors of resolvers: no resolver uses `info`, the fourth parameter of graphql-js, which the
 * writer cannot give. A resolver of a query that reads it throws, and graphql-js executes the query again. A resolver of
 * a mutation may have had effects by then, so one that declares the parameter is never called by the writer.
 */

/**
 * The value that is passed to resolvers as `info`. A resolver that reads it throws; graphql-js then executes the query,
 * and there `info` is available.
 */
export const NO_INFO = new Proxy(
  {},
  {
    get() {
      throw new Error('`info` is unavailable on the fast path.');
    },
  },
);

/** The number of a resolver's parameters before `info`: the parent, the arguments and the context. */
const PARAMETERS_BEFORE_INFO = 3;

/** Whether a resolver declares the parameter `info`. */
export function takesInfo(resolve: { readonly length: number }): boolean {
  return resolve.length > PARAMETERS_BEFORE_INFO;
}
