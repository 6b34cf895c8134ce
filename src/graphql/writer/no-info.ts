/**
 * Detects and refuses resolvers that use `info`, the fourth parameter of graphql-js, which the writer cannot provide.
 * If a resolver of a query reads it, the read throws, and graphql-js executes the query again. A resolver of a mutation
 * may have had effects by then, so the writer never calls one that declares this parameter.
 */

/**
 * The value that the writer passes as `info`. Reading it throws; graphql-js then executes the query, with a real
 * `info`.
 */
export const NO_INFO = new Proxy(
  {},
  {
    get() {
      throw new Error('`info` is unavailable on the fast path.');
    },
  },
);

/** The number of parameters before `info`: the parent, the arguments and the context. */
const PARAMETERS_BEFORE_INFO = 3;

/** Whether a resolver declares the parameter `info`. */
export function takesInfo(resolve: { readonly length: number }): boolean {
  return resolve.length > PARAMETERS_BEFORE_INFO;
}
