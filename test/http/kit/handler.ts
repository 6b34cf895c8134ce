/** A handler of requests for tests of the server alone. */
import type { RequestHandler } from '../../../src/http/request-handler.ts';
import type { HttpResponse } from '../../../src/web/request.ts';

/** Returns a handler that answers every request with `answer`, and takes no upgrade. */
export function answering(answer: (response: HttpResponse) => void): RequestHandler {
  return {
    connection() {},
    secured() {},
    released() {},
    request: (_request, response) => answer(response),
    continuing() {},
    expectation() {},
    tunnel() {},
    broken() {},
    shouldUpgrade: () => false,
    upgrade() {},
  };
}
