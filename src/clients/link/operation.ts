/** Sends GraphQL operations over HTTP and reads the answers. */
import { type LibraryErrorDetails, badAnswer, textOf, type HttpAnswer } from './library-error.ts';
import { requestRelay, type RelayRequestOptions } from './request-with-retries.ts';

/** The text of a GraphQL operation, with the types of its data and its variables if these are known. */
export type TypedOperation<Data, Variables> = {
  toString(): string;
  readonly __apiType?: (variables: Variables) => Data;
};

/** Runs one operation. Rejects with the library's error, even if the answer contains partial data besides errors. */
export type RunOperation = <Data, Variables extends object>(
  operation: TypedOperation<Data, Variables>,
  variables: Variables,
  signal?: AbortSignal,
) => Promise<Data>;

type OperationErrorDetails = LibraryErrorDetails & { readonly status?: number | null };

/** The time limit of an operation, in milliseconds. */
const OPERATION_MS = 10_000;

/**
 * Creates a function that sends queries and mutations to the relay's GraphQL endpoint. The function repeats a request
 * if the connection breaks. Set `retries` to 0 for a mutation that must not be repeated. `errorOf` makes the errors.
 */
export function createOperationRunner(
  options: RelayRequestOptions,
  errorOf: (code: string, message: string, details: OperationErrorDetails) => Error,
): RunOperation {
  return async <Data, Variables extends object>(
    operation: TypedOperation<Data, Variables>,
    variables: Variables,
    signal?: AbortSignal,
  ): Promise<Data> => {
    const { status, body, retryAfterMs } = await requestRelay(options, {
      method: 'POST',
      path: '/graphql',
      body: JSON.stringify({ query: operation.toString(), variables }),
      budgetMs: OPERATION_MS,
      signal,
      fault: (code, message, cause) => errorOf(code, message, { cause }),
    });
    const refused = operationRefusal(body);
    if (refused) throw errorOf(refused.code, refused.message, { status, retryAfterMs });
    const { data } = body;
    if (isData<Data>(data)) return data;
    throw errorOf('bad_answer', badAnswer(status).message, { status, retryAfterMs });
  };
}

/**
 * Whether the data is an object. Its members are not checked, because the relay has validated the operation against its
 * schema.
 */
export function isData<Data>(data: unknown): data is Data {
  return typeof data === 'object' && data !== null;
}

/**
 * Returns the first error of a GraphQL answer, or the problem document of a request that was refused before GraphQL
 * ran. Null if the answer contains neither.
 */
export function operationRefusal(body: HttpAnswer['body']): { readonly code: string; readonly message: string } | null {
  const first: unknown = Array.isArray(body['errors']) ? body['errors'][0] : undefined;
  if (first !== undefined) {
    const error = recordOf(first);
    const code = textOf(recordOf(error['extensions'])['code']) ?? 'bad_answer';
    return { code, message: textOf(error['message']) ?? code };
  }
  const code = textOf(body['code']);
  return code === null ? null : { code, message: textOf(body['detail']) ?? code };
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
