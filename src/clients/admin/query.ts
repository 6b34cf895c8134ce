/** Sends one GraphQL operation to the relay and turns refusals into AdminError. Knows no particular query. */
import type { TypedDocumentString } from '../../generated/admin.ts';
import { requestRelay, textOf, type RelayRequestOptions, type HttpAnswer } from '../link/relay-request.ts';
import { AdminError } from './errors.ts';

/** How long the relay may take to answer a query, in milliseconds. The request fails only GRACE_MS later. */
const BUDGET_MS = 10_000;

/** Runs one operation. Rejects with AdminError, also when the answer contains errors beside partial data. */
export type RunQuery = <Data, Variables extends object>(
  document: TypedDocumentString<Data, Variables>,
  variables: Variables,
) => Promise<Data>;

/**
 * Creates a function that sends queries and mutations to the relay's GraphQL endpoint. It repeats a request whose
 * connection breaks, so set `retries` to 0 for a mutation that must not be repeated.
 */
export function createQueryRunner(options: RelayRequestOptions): RunQuery {
  return async (document, variables) => {
    const answer = await requestRelay(options, {
      method: 'POST',
      path: '/graphql',
      body: { query: document.toString(), variables },
      budgetMs: BUDGET_MS,
      fault: (code, message, cause) => new AdminError(code, message, { cause }),
    });
    return dataOf(answer);
  };
}

/**
 * Returns the data of an answer. Its type is not checked: the relay validated the document against the schema from
 * which the type was generated.
 */
function dataOf<Data>({ status, body, retryAfterMs }: HttpAnswer): Data {
  const refusal = refusalOf(body);
  if (refusal) throw new AdminError(refusal.code, refusal.message, { status, retryAfterMs });
  const { data } = body;
  if (!isData<Data>(data)) {
    throw new AdminError('bad_answer', `HTTP ${status} without a relay's answer.`, { status, retryAfterMs });
  }
  return data;
}

function isData<Data>(data: unknown): data is Data {
  return typeof data === 'object' && data !== null;
}

type Refused = { readonly code: string; readonly message: string };

/**
 * Returns the first GraphQL error, or the problem document of a request that was refused before GraphQL. Null: the
 * answer has neither.
 */
function refusalOf(body: HttpAnswer['body']): Refused | null {
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
